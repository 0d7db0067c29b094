//! The executor of one process: what it may do at its place, and the start gate.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use errand_runner::Life;
use serde_json::Value;
use streams::id::Attempt;
use tokio::time::{Duration, Instant};
use workers::executor::{Error, Executor, Places, RunName, RunPlan};

use crate::calls::Op;
use crate::fixture;
use crate::history::Start;
use crate::place::{Place, Run};
use crate::planted::Planted;
use crate::process::{Broken, Process};

/// One process at its place.
pub(crate) struct Host {
    pub(crate) process: Arc<Process>,
    pub(crate) place: usize,
    /// The runs that this process has started.
    pub(crate) started: Mutex<BTreeSet<(usize, Attempt)>>,
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::Unavailable(broken.to_string())
    }
}

impl Host {
    async fn at_place<T: Send>(
        &self,
        op: Op,
        run: RunName,
        effect: impl FnOnce(&mut Place, (usize, Attempt), Duration) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let world = &self.process.world;
        let job = world.job_in(&run.job.to_string());
        let job = job.ok_or_else(|| Error::Impossible(format!("nobody knows {run}")))?;
        let effect = async {
            let now = world.now();
            effect(&mut world.places()[self.place], (job, run.attempt), now)
        };
        let done = self.process.call(op, Some(job), effect).await?;
        if op != Op::Look {
            self.process.tell(|| format!("{op:?} of run {job}-{}", run.attempt));
        }
        done
    }

    fn log(&self, (job, attempt): (usize, Attempt)) -> PathBuf {
        self.process.world.directory.join(format!("{}-{job}-{attempt}.log", self.place))
    }

    /// What the history knows of a run that is over.
    fn note_end(&self, key: (usize, Attempt), until: Duration) {
        let mut history = self.process.world.history();
        let starts = history.starts.iter_mut();
        let same = |start: &&mut Start| {
            (start.job, start.attempt, start.place) == (key.0, key.1, self.place)
        };
        for start in starts.filter(same) {
            start.until.get_or_insert(until);
        }
    }
}

#[async_trait]
impl Executor for Host {
    async fn look(&self, run: RunName) -> Result<Life, Error> {
        self.at_place(Op::Look, run, |place, key, now| {
            let Some(run) = place.runs.get_mut(&key) else { return Ok(Life::Fresh) };
            let is_blind = self.process.world.planted == Some(Planted::NoStartGate);
            if is_blind && !self.started.lock().expect("no poison").contains(&key) {
                return Ok(Life::Fresh);
            }
            let life = run.life(now);
            if run.ended(now).is_some() {
                // While it runs it has written no line.
                self.process.world.fixture.write_log(&self.log(key));
            }
            if let (Some(ended), Life::Ended(_)) = (run.ended(now), &life) {
                self.note_end(key, ended);
            }
            Ok(life)
        })
        .await
    }

    async fn is_prepared(&self, run: RunName) -> Result<bool, Error> {
        self.at_place(Op::IsPrepared, run, |place, key, _| Ok(place.runs.contains_key(&key))).await
    }

    async fn prepare(&self, run: RunName, plan: &RunPlan) -> Result<(), Error> {
        self.at_place(Op::Prepare, run, |place, key, _| {
            let objects = &self.process.world.objects;
            if objects.get(&plan.workdir.key).is_none() {
                let missing = &plan.workdir.key;
                return Err(Error::Impossible(format!("bundle {missing} is not there")));
            }
            let job = &self.process.world.plan.jobs[key.0];
            let program = is_program(&plan.launch.agent);
            let agent = if program { job.program() } else { job.agent_of(key.1) };
            let limit = Duration::from_secs_f64(plan.launch.timeout_seconds);
            let lease = plan.launch.lease_seconds.unwrap_or(f64::MAX / 1e9);
            let lease = Duration::from_secs_f64(lease.min(1e9));
            place.runs.entry(key).or_insert_with(|| Run::prepared(agent, limit, lease));
            Ok(())
        })
        .await
    }

    async fn start(&self, run: RunName, plan: &RunPlan, held: Instant) -> Result<(), Error> {
        let program = is_program(&plan.launch.agent);
        self.at_place(Op::Start, run, |place, key, now| {
            let world = &self.process.world;
            let Some(run) = place.runs.get_mut(&key) else {
                return Err(Error::Unavailable("its directory is gone".to_owned()));
            };
            // The start gate.
            if run.started.is_some() && world.planted != Some(Planted::NoStartGate) {
                return Ok(());
            }
            let held = now.saturating_sub(held.elapsed());
            if held + run.lease <= now {
                return Err(Error::Unavailable("the claim was held too long ago".to_owned()));
            }
            self.started.lock().expect("no poison").insert(key);
            run.started = Some(now);
            run.renewed = held;
            let (job, attempt) = key;
            let place = self.place;
            let start = Start { job, attempt, place, program, from: now, until: None };
            world.history().starts.push(start);
            Ok(())
        })
        .await
    }

    /// It starts in one go: whatever has not started is closed for good.
    async fn close(&self, run: RunName) -> Result<bool, Error> {
        self.at_place(Op::Close, run, |place, key, _| {
            let is_blind = self.process.world.planted == Some(Planted::NoStartGate);
            let started = place.runs.get(&key).is_some_and(|run| run.started.is_some());
            Ok(is_blind || !started)
        })
        .await
    }

    async fn renew(&self, run: RunName, held: Instant) -> Result<(), Error> {
        self.at_place(Op::Renew, run, |place, key, now| {
            if let Some(run) = place.runs.get_mut(&key) {
                run.renew(now, now.saturating_sub(held.elapsed()));
            }
            Ok(())
        })
        .await
    }

    async fn stop(&self, run: RunName, reason: &str) -> Result<(), Error> {
        self.at_place(Op::Stop, run, |place, key, now| match place.runs.get_mut(&key) {
            Some(run) => {
                run.ask_to_stop(now, reason);
                Ok(())
            }
            None => Err(Error::Unavailable("its directory is gone".to_owned())),
        })
        .await
    }

    async fn sweep(&self, run: RunName) -> Result<(), Error> {
        self.at_place(Op::Sweep, run, |_, key, now| {
            self.note_end(key, now);
            Ok(())
        })
        .await
    }

    fn places(&self, run: RunName, agent: &Value) -> Result<Places, Error> {
        let world = &self.process.world;
        let job = world.job_in(&run.job.to_string()).unwrap_or_default();
        Ok(world.fixture.places(agent, self.log((job, run.attempt))))
    }

    async fn remove(&self, run: RunName) -> Result<(), Error> {
        self.at_place(Op::Clear, run, |place, key, now| {
            let Some(run) = place.runs.get_mut(&key) else { return Ok(()) };
            if run.life(now) == Life::Running {
                run.ask_to_stop(now, "its directory is to be removed");
                return Err(Error::Unavailable("it has yet to stop".to_owned()));
            }
            self.note_end(key, run.ended(now).unwrap_or(now));
            place.runs.remove(&key);
            Ok(())
        })
        .await
    }

    async fn runs(&self) -> Result<Vec<RunName>, Error> {
        let world = &self.process.world;
        let effect = async {
            let places = world.places();
            let runs = places[self.place].runs.keys();
            let named = runs
                .map(|(job, attempt)| RunName { job: world.plan.jobs[*job].id, attempt: *attempt });
            named.collect()
        };
        Ok(self.process.call(Op::Runs, None, effect).await?)
    }
}

/// Whether the runner's agent is a post-run action.
fn is_program(agent: &Value) -> bool {
    agent["name"] == fixture::PROGRAM
}
