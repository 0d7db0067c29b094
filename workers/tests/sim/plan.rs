//! Plans: all that is to happen in a world, as a pure function of its seed.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};
use streams::id::{Attempt, JobId};
use streams::phase::StepName;
use streams::snapshot::{Action, AgentSnapshot, QueueLimit, Resources, Snapshot, Spec};
use streams::topology::DUPLICATE_WINDOW;
use tokio::time::Duration;
use uuid::Uuid;

use crate::calls::{Call, Fault, Op, When};
use crate::dice::{Dice, mixed};
use crate::fixture::PROGRAM;

/// The workspace of every job.
pub(crate) const WORKSPACE: &str = "here";

/// When a claim may be taken over elsewhere: short enough to be seen, and long enough for the
/// rules about it to hold, since claims are renewed every 30 s.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(240);

/// What a call takes at most when nothing is wrong, in milliseconds.
const LATENCY: u64 = 9;

#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) jobs: Vec<Job>,
    /// The place of each worker.
    pub(crate) workers: Vec<usize>,
    pub(crate) places: usize,
    pub(crate) slots: usize,
    pub(crate) faults: BTreeMap<Call, Fault>,
    /// What happens by itself, and when.
    pub(crate) events: Vec<(Duration, Event)>,
    /// Of a hundred deliveries, so many are doubled.
    pub(crate) doubled: u64,
    /// Whether it is waited until the directories of the runs are cleared away.
    pub(crate) is_cleared: bool,
    /// Whether every call is noted.
    pub(crate) notes_calls: bool,
}

/// A job that somebody submits.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) agents: [Agent; 2],
    pub(crate) max_attempts: u32,
    /// How long its agent may run.
    pub(crate) limit: Duration,
    pub(crate) follows: Follows,
    /// Whether its spec cannot be run.
    pub(crate) refused: bool,
    /// Whether its time to be started is over, by the clock of the workers.
    pub(crate) overdue: bool,
    pub(crate) may_wait: bool,
}

/// What follows a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Nothing,
    Message,
    Program,
}

/// What an agent does when it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Succeeds(Duration),
    Fails(Duration),
    /// It never ends, so that its limit does.
    Hangs,
    /// Its supervisor is killed.
    LosesItsSupervisor(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Submit(usize),
    Cancel(usize),
    /// The control plane finds that its time to be started is over.
    Overdue(usize),
    Hold(usize),
    Release(usize),
    /// The facts of a finished job leave the streams.
    Purge(usize),
    /// An operator removes the consumer of a step.
    LoseConsumer(usize),
    /// The queue is away for so long: for one process, or for all.
    QueueAway {
        of: Option<usize>,
        long: Duration,
    },
    /// A worker is killed.
    Kill(usize),
    /// A place is gone for good, with its workers.
    LosePlace(usize),
}

impl Agent {
    pub(crate) const fn succeeds(self) -> bool {
        matches!(self, Self::Succeeds(_))
    }

    pub(crate) const fn runs_for(self) -> Option<Duration> {
        match self {
            Self::Succeeds(long) | Self::Fails(long) => Some(long),
            Self::Hangs | Self::LosesItsSupervisor(_) => None,
        }
    }

    pub(crate) const fn supervisor_dies(self) -> Option<Duration> {
        match self {
            Self::LosesItsSupervisor(after) => Some(after),
            _ => None,
        }
    }
}

impl Job {
    fn plain(dice: &mut Dice) -> Self {
        let agent = Agent::Succeeds(dice.between(300, 600));
        Self {
            id: JobId::from_uuid(Uuid::from_u64_pair(dice.number(), dice.number())),
            agents: [agent, agent],
            max_attempts: 1,
            limit: Duration::from_secs(15),
            follows: Follows::Nothing,
            refused: false,
            overdue: false,
            may_wait: false,
        }
    }

    fn thrown(dice: &mut Dice) -> Self {
        let agent = |dice: &mut Dice| {
            let long =
                if dice.percent(85) { dice.between(20, 500) } else { dice.between(8_000, 25_000) };
            match dice.below(10) {
                0..=5 => Agent::Succeeds(long),
                6 | 7 => Agent::Fails(long),
                8 => Agent::Hangs,
                _ => Agent::LosesItsSupervisor(long),
            }
        };
        Self {
            agents: [agent(dice), agent(dice)],
            max_attempts: if dice.percent(40) { 2 } else { 1 },
            follows: dice.one_of(&[Follows::Nothing, Follows::Message, Follows::Program]),
            refused: dice.percent(4),
            overdue: dice.percent(4),
            may_wait: dice.percent(20),
            ..Self::plain(dice)
        }
    }

    /// What the agent of an attempt is like.
    pub(crate) fn agent_of(&self, attempt: Attempt) -> Agent {
        self.agents[usize::from(attempt.0 > 1)]
    }

    /// What the program of its action is like.
    pub(crate) const fn program(&self) -> Agent {
        Agent::Succeeds(Duration::from_millis(700))
    }

    /// What is admitted of it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let (kind, config) = match self.follows {
            Follows::Nothing => ("agents.noop", json!({})),
            Follows::Message => ("agents.publish", json!({"subject": "news.of.jobs"})),
            Follows::Program => (PROGRAM, json!({})),
        };
        // A limit long past for the workers' clock, or far away: the control plane has its own.
        let limit =
            |seconds| QueueLimit { seconds, ..QueueLimit::from_now(seconds).expect("a time") };
        let queue_limit = match (self.overdue, self.may_wait) {
            (true, _) => Some(limit(0.0)),
            (false, true) => Some(limit(1e6)),
            (false, false) => None,
        };
        Snapshot {
            name: "job".to_owned(),
            input: String::new(),
            context: Map::new(),
            timeout_seconds: self.limit.as_secs_f64(),
            idle_timeout_seconds: None,
            queue_limit,
            max_attempts: self.max_attempts,
            expect_files: Vec::new(),
            notify: None,
            spec: Spec {
                request: Value::Null,
                agent: AgentSnapshot {
                    name: "agent".to_owned(),
                    workspace: WORKSPACE.to_owned(),
                    config: json!({"name": "agent"}),
                    config_format: "nemo-agents-spec-v1".to_owned(),
                },
                agent_ref: None,
                workdir: None,
                compute: None,
                secrets: BTreeMap::new(),
                post_run_action: Action {
                    kind: kind.to_owned(),
                    config: config.as_object().cloned().unwrap_or_default(),
                },
                context: None,
            },
            base: None,
            mounts: Vec::new(),
            ethos: None,
            image: None,
            resources: Resources::default(),
        }
    }
}

impl Plan {
    /// One job, two workers at so many places, and nothing that goes wrong.
    pub(crate) fn quiet(places: usize, follows: Follows) -> Self {
        let mut dice = Dice::new(places as u64);
        Self {
            seed: 0,
            jobs: vec![Job { follows, ..Job::plain(&mut dice) }],
            workers: vec![0, places - 1],
            places,
            slots: 1,
            faults: BTreeMap::new(),
            events: vec![(Duration::ZERO, Event::Submit(0))],
            doubled: 0,
            is_cleared: true,
            notes_calls: false,
        }
    }

    /// The plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let dice = &mut Dice::new(mixed(&[seed, 1]));
        let jobs: Vec<_> =
            (0..dice.one_of(&[1, 1, 1, 1, 1, 2, 2, 3])).map(|_| Job::thrown(dice)).collect();
        let places = if dice.percent(50) { 2 } else { 1 };
        let mut plan = Self {
            seed,
            jobs,
            slots: dice.one_of(&[1, 2]),
            ..Self::quiet(places, Follows::Nothing)
        };
        plan.doubled = if dice.percent(30) { 20 } else { 0 };
        plan.is_cleared = dice.percent(20);
        plan.events = events(&plan, dice);
        for _ in 0..dice.below(7) {
            let call = Call {
                by: dice.one_of(&[0, 0, 1, 1, 1, 2]),
                op: dice.one_of(&FAULTY),
                job: Some(usize::try_from(dice.below(plan.jobs.len() as u64)).unwrap_or_default()),
                nth: 1 + u32::try_from(dice.below(6)).unwrap_or_default(),
            };
            let call = if call.op == Op::Look { Call { nth: call.nth * 23, ..call } } else { call };
            plan.faults.insert(call, fault(dice));
        }
        plan.keep_one_who_knows();
        plan.keep_the_facts();
        plan
    }

    /// The consumer of a workspace, when it is removed, is made anew only by a worker that has known
    /// the workspace before. So not all of them may die then.
    fn keep_one_who_knows(&mut self) {
        let deadly = |fault: &Fault| matches!(fault, Fault::Crash(_));
        let is_deadly = |event: &Event| matches!(event, Event::Kill(_) | Event::LosePlace(_));
        if self.faults.values().any(deadly) || self.events.iter().any(|(_, event)| is_deadly(event))
        {
            let lost = Event::LoseConsumer(StepName::Invoke as usize);
            self.events.retain(|(_, event)| *event != lost);
        }
    }

    /// Jobs stay in the streams for longer than any process sleeps: a call that is on its way for
    /// longer than the queue remembers messages would come as a new one.
    fn keep_the_facts(&mut self) {
        let is_long =
            |fault: &Fault| matches!(fault, Fault::Sleep(_, long) if *long >= DUPLICATE_WINDOW / 2);
        if self.faults.values().any(is_long) {
            self.events.retain(|(_, event)| !matches!(event, Event::Purge(_)));
        }
    }

    /// How long a call takes.
    pub(crate) fn latency(&self, call: Call) -> Duration {
        let Call { by, op, job, nth } = call;
        let job = job.map_or(99, |job| job as u64);
        let number = mixed(&[self.seed, by as u64, op as u64, job, nth.into()]);
        Duration::from_millis(1 + number % LATENCY)
    }

    /// How long it takes until a worker is started again.
    pub(crate) fn pause(&self, number: usize, life: u64, (from, to): (u64, u64)) -> Duration {
        Dice::new(mixed(&[self.seed, number as u64, life])).between(from, to)
    }

    /// When the last thing of the plan has happened; faults of calls aside.
    pub(crate) fn last_event(&self) -> Duration {
        let ends = self.events.iter().map(|(at, event)| match event {
            Event::QueueAway { long, .. } => *at + *long,
            _ => *at,
        });
        ends.max().unwrap_or_default()
    }
}

/// What is likely to be interesting when it goes wrong.
const FAULTY: [Op; 22] = [
    Op::Publish,
    Op::Publish,
    Op::Publish,
    Op::Last,
    Op::Last,
    Op::Next,
    Op::Get,
    Op::Create,
    Op::Update,
    Op::Update,
    Op::Ack,
    Op::Nak,
    Op::Put,
    Op::Head,
    Op::Look,
    Op::Prepare,
    Op::Start,
    Op::Renew,
    Op::Stop,
    Op::Sweep,
    Op::Admit,
    Op::Secrets,
];

fn fault(dice: &mut Dice) -> Fault {
    let when = dice.one_of(&[When::Before, When::After]);
    match dice.below(10) {
        0..=2 => Fault::Fails(when),
        3 => Fault::Late(dice.between(10, 40_000)),
        4..=6 => Fault::Crash(when),
        7 => Fault::Sleep(when, dice.between(100, 60_000)),
        _ => Fault::Sleep(when, dice.between(200_000, 900_000)),
    }
}

fn events(plan: &Plan, dice: &mut Dice) -> Vec<(Duration, Event)> {
    let mut events = Vec::new();
    // Most of what happens, happens soon.
    let when = |dice: &mut Dice| {
        if dice.percent(70) { dice.between(0, 3000) } else { dice.between(0, 90_000) }
    };
    for job in 0..plan.jobs.len() {
        let at = dice.between(0, 500);
        events.push((at, Event::Submit(job)));
        if dice.percent(15) {
            events.push((at + when(dice), Event::Submit(job)));
        }
        if dice.percent(20) {
            events.push((at + when(dice), Event::Cancel(job)));
        }
        if plan.jobs[job].may_wait && dice.percent(50) {
            events.push((at + when(dice), Event::Overdue(job)));
        }
        if dice.percent(5) {
            events.push((at + when(dice), Event::Purge(job)));
        }
        if dice.percent(8) {
            let hold = at + when(dice);
            events.push((hold, Event::Hold(job)));
            events.push((hold + when(dice), Event::Release(job)));
        }
    }
    if dice.percent(15) {
        let step = usize::try_from(dice.below(5)).unwrap_or_default();
        events.push((when(dice), Event::LoseConsumer(step)));
    }
    if dice.percent(15) {
        let of = dice.one_of(&[None, Some(0), Some(1)]);
        let long = if dice.percent(60) {
            dice.between(500, 40_000)
        } else {
            dice.between(100_000, 600_000)
        };
        events.push((when(dice), Event::QueueAway { of, long }));
    }
    if dice.percent(20) {
        events.push((when(dice), Event::Kill(dice.one_of(&[0, 1]))));
    }
    if plan.places > 1 && dice.percent(15) {
        events.push((when(dice), Event::LosePlace(dice.one_of(&[0, 1]))));
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "workers at places {:?}, {} slots each", self.workers, self.slots)?;
        for (number, job) in self.jobs.iter().enumerate() {
            let Job { id, agents, max_attempts, follows, refused, overdue, .. } = job;
            write!(f, "job {number} {id}: {agents:?}, {max_attempts} attempts, then {follows:?}")?;
            writeln!(f, ", refused: {refused}, overdue: {overdue}")?;
        }
        for (at, event) in &self.events {
            writeln!(f, "at {:.3}s: {event:?}", at.as_secs_f64())?;
        }
        for (call, fault) in &self.faults {
            writeln!(f, "{call}: {fault:?}")?;
        }
        Ok(())
    }
}
