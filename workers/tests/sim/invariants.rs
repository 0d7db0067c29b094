//! What must hold in every world after its end, whatever happened in it: the list. What each one
//! says is in `rules`, and a planted fault for each in `planted`.

use std::collections::BTreeMap;

use streams::broker::Broker;
use streams::claim::{self, Claim, Decision, End};
use streams::envelope::Envelope;
use streams::fact::{Acted, Archived, Fact, Invoked, Staged};
use streams::phase::Phase;
use streams::topology::Bucket;
use tokio::time::Duration;

use crate::history::Told;
use crate::rules;
use crate::world::World;

pub(crate) const EVERY_JOB_ENDS: &str = "every job ends";
pub(crate) const SIX_FACTS: &str = "a job leaves six facts";
pub(crate) const ONE_STORY: &str = "the facts tell one story";
pub(crate) const ONE_START: &str = "an attempt is started once, and before its end is told";
pub(crate) const ONE_AGENT: &str = "a job has one agent at a time";
pub(crate) const ONE_ACTION: &str = "an action is done once";
pub(crate) const STATUS: &str = "the status goes forward, in whatever order facts come";
pub(crate) const LISTED: &str = "what is listed is saved";
pub(crate) const LOG: &str = "the log has each line once";
pub(crate) const REASONS: &str = "an end has its reason";
pub(crate) const NOTHING_LEFT: &str = "nothing is left of a finished job";

/// How long whoever woke up has something to do.
const AWAKE: Duration = Duration::from_secs(5);

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

/// What the rules are asked about.
pub(crate) struct Ended<'a> {
    pub(crate) world: &'a World,
    pub(crate) jobs: Vec<Facts>,
    /// What was decided of each job's end.
    pub(crate) ends: Vec<Option<Decision>>,
}

/// The facts of one job: all of them in their order, and what some of them say.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) all: Vec<Told>,
    pub(crate) staged: Option<Staged>,
    pub(crate) invoked: Option<Invoked>,
    pub(crate) acted: Option<Acted>,
    pub(crate) archived: Option<Archived>,
}

type Rule = fn(&Ended<'_>) -> Vec<String>;

/// All that can be told of the history.
const RULES: [(&str, Rule); 9] = [
    (SIX_FACTS, rules::six_facts),
    (ONE_STORY, rules::one_story),
    (ONE_START, rules::one_start),
    (ONE_AGENT, rules::one_agent_at_a_time),
    (ONE_ACTION, rules::one_action),
    (STATUS, rules::status_goes_forward),
    (LISTED, rules::listed_is_saved),
    (LOG, rules::log_is_whole),
    (REASONS, rules::ends_have_reasons),
];

/// Everything that is wrong.
pub(crate) async fn check(world: &World) -> Vec<Wrong> {
    let mut ends = Vec::new();
    for job in &world.plan.jobs {
        let end = world.memory.get(Bucket::Ends, &job.id.to_string()).await;
        let end = end.expect("the memory answers");
        let end = end.and_then(|end| serde_json::from_slice::<End>(&end.value).ok());
        ends.push(end.map(|end| end.decided));
    }
    let jobs = (0..world.plan.jobs.len()).map(|job| Facts::of(world, job)).collect();
    let ended = Ended { world, jobs, ends };
    let mut wrong: Vec<_> = unfinished(&ended).collect();
    for (invariant, rule) in RULES {
        wrong.extend(rule(&ended).into_iter().map(|what| Wrong { invariant, what }));
    }
    let left = left(world).await.into_iter();
    wrong.extend(left.map(|what| Wrong { invariant: NOTHING_LEFT, what }));
    wrong
}

fn unfinished<'a>(ended: &'a Ended<'_>) -> impl Iterator<Item = Wrong> + use<'a> {
    let jobs = ended.jobs.iter().enumerate().filter(|(_, facts)| facts.archived.is_none());
    let now: Duration = ended.world.now();
    jobs.map(move |(job, _)| Wrong {
        invariant: EVERY_JOB_ENDS,
        what: format!("job {job} has not ended by {now:?}"),
    })
}

impl Facts {
    fn of(world: &World, job: usize) -> Self {
        let history = world.history();
        let all = history.facts.iter().filter(|fact| fact.job == job).cloned().collect();
        drop(history);
        let mut facts = Self { all, ..Self::default() };
        facts.staged = facts.read();
        facts.invoked = facts.read();
        facts.acted = facts.read();
        facts.archived = facts.read();
        facts
    }

    /// The first fact of a phase.
    fn read<F: Fact>(&self) -> Option<F> {
        let told = self.all.iter().find(|told| told.phase == F::PHASE)?;
        let now = jiff::Timestamp::now();
        let read = Envelope::<F>::decode(&told.subject, &told.payload, now);
        Some(read.expect("a fact of ours can be read").fact)
    }

    /// When a phase was told.
    pub(crate) fn at(&self, phase: Phase) -> Option<Duration> {
        self.all.iter().find(|told| told.phase == phase).map(|told| told.at)
    }

    /// How many there are of each phase.
    pub(crate) fn counts(&self) -> BTreeMap<Phase, usize> {
        let mut counts: BTreeMap<_, _> = Phase::CHAIN.into_iter().map(|phase| (phase, 0)).collect();
        for told in &self.all {
            *counts.entry(told.phase).or_default() += 1;
        }
        counts
    }
}

/// Whether something of a job may still be cleared up.
pub(crate) fn is_busy(world: &World) -> bool {
    let runs = world.places().iter().any(|place| !place.runs.is_empty());
    // Who wakes up late still has something in hand.
    let asleep = world.history().asleep_until + AWAKE > world.now();
    asleep || (runs && world.plan.is_cleared) || !world.memory.unsettled().is_empty()
}

async fn left(world: &World) -> Vec<String> {
    let unsettled = world.memory.unsettled().into_iter();
    let mut left: Vec<_> =
        unsettled.map(|(consumer, subject)| format!("{consumer} has {subject} open")).collect();
    for (number, job) in world.plan.jobs.iter().enumerate() {
        for key in [claim::agent_key(job.id), claim::action_key(job.id)] {
            let entry = world.memory.get(Bucket::Claims, &key).await.expect("the memory answers");
            let claim = entry.and_then(|entry| serde_json::from_slice::<Claim>(&entry.value).ok());
            if claim.is_some_and(|claim| !claim.done) {
                left.push(format!("the claim {key} of job {number} is not done"));
            }
        }
        let hold = world.memory.get(Bucket::Holds, &job.id.to_string()).await;
        if hold.expect("the memory answers").is_some() {
            left.push(format!("job {number} is held"));
        }
    }
    let places = world.places();
    for (number, place) in places.iter().enumerate().filter(|_| world.plan.is_cleared) {
        for (job, attempt) in place.runs.keys() {
            left.push(format!("place {number} has the directory of run {job}-{attempt}"));
        }
    }
    left
}
