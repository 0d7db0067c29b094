//! What must hold in every world after its end, whatever happened in it. A function each.

use std::collections::BTreeMap;

use streams::broker::Broker;
use streams::claim::{self, Claim, Decision, End};
use streams::code::Code;
use streams::envelope::Envelope;
use streams::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged};
use streams::job::{self, Job};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::ObjectRef;
use streams::topology::Bucket;

use crate::plan::Follows;
use crate::world::World;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

/// What the invariants are asked about.
struct Ended<'a> {
    world: &'a World,
    jobs: Vec<Facts>,
    /// What was decided of each job's end.
    ends: Vec<Option<Decision>>,
}

/// The facts of one job, the first of each phase, and how many there were.
#[derive(Default)]
struct Facts {
    count: BTreeMap<Phase, usize>,
    resolved: Option<Resolved>,
    staged: Option<Staged>,
    invoked: Option<Invoked>,
    acted: Option<Acted>,
    archived: Option<Archived>,
}

type Invariant = fn(&Ended<'_>) -> Vec<String>;

/// All that can be told from the history.
const INVARIANTS: [(&str, Invariant); 8] = [
    ("every job leaves six facts", six_facts),
    ("the facts tell one story", one_story),
    ("an attempt is started once", one_start),
    ("a job has one agent at a time", one_agent_at_a_time),
    ("an action is done once", one_action),
    ("the status only goes forward", status_goes_forward),
    ("what is listed is saved", listed_is_saved),
    ("an end has its reason", ends_have_reasons),
];

/// Everything that is wrong.
pub(crate) async fn check(world: &World) -> Vec<Wrong> {
    let mut ends = Vec::new();
    for job in &world.plan.jobs {
        let end = world.memory.get(Bucket::Ends, &job.id.to_string()).await;
        let end = end.expect("the memory answers");
        ends.push(end.and_then(|end| serde_json::from_slice::<End>(&end.value).ok()));
    }
    let ends = ends.into_iter().map(|end| end.map(|end| end.decided)).collect();
    let jobs = (0..world.plan.jobs.len()).map(|job| facts(world, job)).collect();
    let ended = Ended { world, jobs, ends };
    let seen = world.history().wrong.clone();
    let mut wrong: Vec<_> =
        seen.into_iter().map(|(invariant, what)| Wrong { invariant, what }).collect();
    for (invariant, holds) in INVARIANTS {
        wrong.extend(holds(&ended).into_iter().map(|what| Wrong { invariant, what }));
    }
    let left = left(world).await.into_iter();
    wrong.extend(left.map(|what| Wrong { invariant: "nothing is left of a finished job", what }));
    wrong
}

fn facts(world: &World, job: usize) -> Facts {
    let mut facts = Facts::default();
    let history = world.history();
    for told in history.facts.iter().filter(|fact| fact.job == job) {
        let count = facts.count.entry(told.phase).or_default();
        *count += 1;
        if *count > 1 {
            continue;
        }
        fn read<F: Fact>(told: &crate::history::Told) -> Option<F> {
            let now = jiff::Timestamp::now();
            let read = Envelope::<F>::decode(&told.subject, &told.payload, now);
            Some(read.expect("a fact of ours can be read").fact)
        }
        match told.phase {
            Phase::Submitted => {}
            Phase::Resolved => facts.resolved = read(told),
            Phase::Staged => facts.staged = read(told),
            Phase::Invoked => facts.invoked = read(told),
            Phase::Acted => facts.acted = read(told),
            Phase::Archived => facts.archived = read(told),
        }
    }
    facts
}

/// Remembers that a job did not come to its end.
pub(crate) fn note_unfinished(world: &World) {
    let unfinished = (0..world.plan.jobs.len()).filter(|job| facts(world, *job).archived.is_none());
    let unfinished: Vec<_> = unfinished.collect();
    let what = format!("jobs {unfinished:?} have not ended by {:?}", world.now());
    world.history().wrong.push(("every job ends", what));
}

/// Whether something of a job may still be cleared up.
pub(crate) fn is_busy(world: &World) -> bool {
    let runs = world.places().iter().any(|place| !place.runs.is_empty());
    (runs && world.plan.is_cleared) || !world.memory.unsettled().is_empty()
}

fn six_facts(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        for phase in Phase::CHAIN {
            let count = facts.count.get(&phase).copied().unwrap_or_default();
            if count != 1 {
                wrong.push(format!("job {job} has {count} facts {phase}"));
            }
        }
    }
    wrong
}

fn one_story(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let Facts { resolved, staged, invoked, acted, archived, .. } = facts;
        let told = [
            resolved.as_ref().and_then(Fact::outcome),
            staged.as_ref().and_then(Fact::outcome),
            invoked.as_ref().and_then(Fact::outcome),
            acted.as_ref().and_then(Fact::outcome),
            archived.as_ref().and_then(Fact::outcome),
        ];
        for (index, pair) in told.windows(2).enumerate() {
            let follows = match (pair[0], pair[1]) {
                // An action may fail where the agent has not.
                (Some(Outcome::Succeeded), Some(Outcome::Failed { code, .. })) => {
                    index == 2 && matches!(code, Code::ActionFailed | Code::ActionMissing)
                }
                (Some(before), after) => Some(before) == after,
                (None, _) => true,
            };
            if !follows {
                wrong.push(format!("job {job}: {:?} is followed by {:?}", pair[0], pair[1]));
            }
        }
    }
    wrong
}

fn one_start(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (job, planned) in ended.world.plan.jobs.iter().enumerate() {
        let starts = history.starts.iter().filter(|start| start.job == job && !start.program);
        let mut attempts: Vec<_> = starts.map(|start| start.attempt.0).collect();
        let most = planned.max_attempts;
        attempts.sort_unstable();
        if attempts.windows(2).any(|pair| pair[0] == pair[1]) || attempts.iter().any(|n| *n > most)
        {
            wrong.push(format!("job {job} may have {most} attempts, and started {attempts:?}"));
        }
    }
    wrong
}

fn one_agent_at_a_time(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (index, one) in history.starts.iter().enumerate() {
        for other in &history.starts[index + 1..] {
            let until = one.until.unwrap_or(other.from);
            if one.job == other.job && until > other.from {
                wrong.push(format!("{one:?} and {other:?}"));
            }
        }
    }
    wrong
}

fn one_action(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let follows = ended.world.plan.jobs[job].follows;
        let programs = history.starts.iter().filter(|start| start.job == job && start.program);
        let programs = programs.count();
        let sent: Vec<_> = history.sent.iter().filter(|(of, ..)| *of == job).collect();
        let succeeded = facts.invoked.as_ref().is_some_and(|fact| fact.outcome.succeeded());
        if programs > usize::from(succeeded && follows == Follows::Program) {
            wrong.push(format!("job {job} follows {follows:?}, and {programs} programs were run"));
        }
        let may_send = succeeded && follows == Follows::Message;
        let differ = sent.windows(2).any(|pair| pair[0] != pair[1]);
        if differ || (!sent.is_empty() && !may_send) {
            wrong.push(format!("job {job} follows {follows:?}, and {} were sent", sent.len()));
        }
        let completed = facts.acted.as_ref().is_some_and(|fact| fact.outcome.succeeded());
        if completed
            && ((may_send && sent.is_empty()) || (follows == Follows::Program && programs == 0))
        {
            wrong.push(format!("job {job} is completed without its {follows:?}"));
        }
    }
    wrong
}

/// Whatever order the facts come in, the job ends up the same, and in their own order its status
/// never falls back.
fn status_goes_forward(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let history = ended.world.history();
    for (number, facts) in ended.jobs.iter().enumerate() {
        let told = history.facts.iter().filter(|fact| fact.job == number);
        let steps: Vec<_> = told.map(|fact| step(facts, fact.phase)).collect();
        let mut job = Job::admitted();
        let mut ranks = vec![job.status().is_terminal()];
        for step in &steps {
            job.apply(step);
            ranks.push(job.status().is_terminal());
        }
        if ranks.windows(2).any(|pair| pair[0] && !pair[1]) {
            wrong.push(format!("job {number} was ended and is not any more"));
        }
        let mut backwards = Job::admitted();
        for step in steps.iter().rev() {
            backwards.apply(step);
        }
        if backwards != job {
            wrong.push(format!("job {number} is {job:?}, and backwards {backwards:?}"));
        }
    }
    wrong
}

fn step(facts: &Facts, phase: Phase) -> job::Step {
    let outcome = match phase {
        Phase::Submitted => None,
        Phase::Resolved => facts.resolved.as_ref().and_then(Fact::outcome),
        Phase::Staged => facts.staged.as_ref().and_then(Fact::outcome),
        Phase::Invoked => facts.invoked.as_ref().and_then(Fact::outcome),
        Phase::Acted => facts.acted.as_ref().and_then(Fact::outcome),
        Phase::Archived => facts.archived.as_ref().and_then(Fact::outcome),
    };
    job::Step { phase, outcome: outcome.cloned() }
}

fn listed_is_saved(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let invoked = facts.invoked.iter().flat_map(|fact| &fact.results);
        let acted = facts.acted.iter().flat_map(|fact| &fact.results);
        let staged = facts.staged.iter().flat_map(|fact| &fact.input_workdir);
        let results = staged.chain(invoked).chain(acted).map(|result| &result.object);
        let archived = facts.archived.iter();
        let kept = archived.flat_map(|fact| [Some(&fact.manifest), fact.logs.as_ref()]).flatten();
        let listed: Vec<&ObjectRef> = results.chain(kept).collect();
        for object in listed {
            if let Some(why) = ended.world.objects.objection(object) {
                wrong.push(format!("job {job} lists {}: {why}", object.key));
            }
        }
    }
    wrong
}

fn ends_have_reasons(ended: &Ended<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (job, facts) in ended.jobs.iter().enumerate() {
        let Some(archived) = &facts.archived else { continue };
        let (decided, outcome) = (ended.ends[job], &archived.outcome);
        let cancelled = matches!(outcome, Outcome::Cancelled { .. });
        let has_run = facts.invoked.as_ref().is_some_and(|fact| fact.run.is_some());
        let holds = match decided {
            // What is refused, or cannot be run, says so whoever wants its end.
            Some(Decision::Cancel) => cancelled || !(has_run || outcome.succeeded()),
            Some(Decision::Closed) | None => !cancelled,
        };
        if !holds && !is_purged(ended, job) {
            wrong.push(format!("job {job} ended as {outcome:?}, decided was {decided:?}"));
        }
    }
    wrong
}

fn is_purged(ended: &Ended<'_>, job: usize) -> bool {
    use crate::plan::Event;
    ended.world.plan.events.iter().any(|(_, event)| *event == Event::Purge(job))
}

async fn left(world: &World) -> Vec<String> {
    let mut left = Vec::new();
    for (consumer, subject) in world.memory.unsettled() {
        left.push(format!("{consumer} has {subject} open"));
    }
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
