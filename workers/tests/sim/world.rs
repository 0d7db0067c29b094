//! The world of one seed: queue, objects and places, and what is remembered of all that happened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use streams::memory::Memory;
use streams::topology::Limits;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use crate::calls::{Call, Fault, Op};
use crate::fixture::Fixture;
use crate::history::History;
use crate::objects::Objects;
use crate::place::Place;
use crate::plan::{Event, Plan};
use crate::planted::Planted;
use crate::process::Process;

/// What calls are numbered by: who makes it, what it is, and which job it is about.
type Kind = (usize, Op, Option<usize>);

pub(crate) struct World {
    pub(crate) plan: Plan,
    /// What is wrong with this world on purpose.
    pub(crate) planted: Option<Planted>,
    pub(crate) fixture: Arc<Fixture>,
    /// Where the workers have their locks, a directory a place, and the runs their logs.
    pub(crate) directory: PathBuf,
    pub(crate) memory: Memory,
    pub(crate) objects: Objects,
    pub(crate) began: Instant,
    /// Told whenever a fact was stored.
    pub(crate) moved: Notify,
    places: Mutex<Vec<Place>>,
    counts: Mutex<BTreeMap<Kind, u32>>,
    faults: Mutex<BTreeMap<Call, Fault>>,
    history: Mutex<History>,
    processes: Mutex<BTreeMap<usize, Weak<Process>>>,
    /// Job ids as they stand in subjects and keys.
    names: Vec<String>,
}

impl World {
    pub(crate) fn new(
        plan: Plan,
        planted: Option<Planted>,
        fixture: &Arc<Fixture>,
        read_along: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            fixture: Arc::clone(fixture),
            directory: fixture.world(),
            memory: Memory::new(Limits::default()),
            objects: Objects::default(),
            began: Instant::now(),
            moved: Notify::new(),
            places: Mutex::new((0..plan.places).map(|_| Place::default()).collect()),
            counts: Mutex::default(),
            faults: Mutex::new(plan.faults.clone()),
            history: Mutex::new(History::new(read_along)),
            processes: Mutex::default(),
            names: plan.jobs.iter().map(|job| job.id.to_string()).collect(),
            plan,
            planted,
        })
    }

    /// How long ago the world began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("no poison")
    }

    pub(crate) fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().expect("no poison")
    }

    /// The job that a subject or a key is about.
    pub(crate) fn job_in(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|id| name.contains(id.as_str()))
    }

    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        let now = self.now();
        self.history().tell(now, what);
    }

    /// Numbers a call.
    pub(crate) fn counted(&self, by: usize, op: Op, job: Option<usize>) -> Call {
        let mut counts = self.counts.lock().expect("no poison");
        let nth = counts.entry((by, op, job)).or_default();
        *nth += 1;
        let call = Call { by, op, job, nth: *nth };
        drop(counts);
        if self.plan.notes_calls {
            self.history().calls.push(call);
        }
        call
    }

    /// What the plan has in store for a call. Each fault strikes once.
    pub(crate) fn strike(&self, call: Call) -> Option<Fault> {
        let fault = self.faults.lock().expect("no poison").remove(&call)?;
        self.tell(|| format!("{call}: {fault:?}"));
        self.history().struck.push((call, fault));
        Some(fault)
    }

    /// Whether a process cannot reach the queue now.
    pub(crate) fn queue_is_away(&self, from: usize) -> bool {
        let now = self.now();
        self.plan.events.iter().any(|(at, event)| match event {
            Event::QueueAway { of, long } => {
                of.is_none_or(|of| of == from) && *at <= now && now < *at + *long
            }
            _ => false,
        })
    }

    /// Remembers who is which process now.
    pub(crate) fn enter(&self, process: &Arc<Process>) {
        let mut processes = self.processes.lock().expect("no poison");
        processes.insert(process.number, Arc::downgrade(process));
    }

    pub(crate) fn kill(&self, number: usize) {
        let processes = self.processes.lock().expect("no poison");
        if let Some(process) = processes.get(&number).and_then(Weak::upgrade) {
            process.kill();
        }
    }
}
