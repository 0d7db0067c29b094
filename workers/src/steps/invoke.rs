//! staged → invoked: runs the agent, once.
//!
//! The order is what makes it once: claim, look at the run directory, look for a cancel, start
//! (behind the runner's own gate), wait, decide the end, save, and only then the fact. A worker
//! that comes in anywhere in between goes on from what it finds.

mod expected;
mod launch;
mod lost;
mod needs;
mod not_run;
mod save;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use errand_runner::{Failure, Life, Outcome as RunOutcome};
use streams::attempt::AttemptEnd;
use streams::claim::Decision;
use streams::code::Code;
use streams::fact::{Invoked, Produced, Run, Staged};
use streams::id::{Attempt, JobId};
use streams::outcome::{Outcome, bounded};
use streams::phase::StepName;
use streams::snapshot::{QueueLimit, Snapshot};
use tokio::time::Instant;

use crate::actions::Registry;
use crate::claims::{self, Begun, Claims, Gone, Grant, Held};
use crate::control::{self, CANCELLED};
use crate::ends::Ends;
use crate::executor::{self, Executor, RunName};
use crate::fault::{self, Point};
use crate::holds::Holds;
use crate::logs::LogSink;
use crate::meter::Running;
use crate::patience::Patience;
use crate::ports::{Secrets, SecretsError};
use crate::seats::Seats;
use crate::status::{Progress, StatusFeed};
use crate::step::{Context, Step, StepError};
use crate::store::Store;
use save::Saved;

/// What an installation decides about runs.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Between TERM and KILL when a run is stopped.
    pub grace: Duration,
    /// Where Fabric adapter descriptors are looked for.
    pub adapter_dirs: Vec<String>,
    /// The interpreter of Python adapters.
    pub python: Option<String>,
    /// Bytes of a script's stdout and stderr that are kept, each.
    pub output_limit_bytes: u64,
}

/// Runs agents.
pub struct Invoke {
    /// The right to.
    pub claims: Claims,
    /// Who decides how it ends.
    pub ends: Ends,
    /// Who keeps jobs from being started.
    pub holds: Holds,
    /// How many of a workspace run at once.
    pub seats: Seats,
    /// Where.
    pub executor: Arc<dyn Executor>,
    /// The post-run actions that are installed here.
    pub actions: Arc<Registry>,
    /// Opened at launch.
    pub secrets: Arc<dyn Secrets>,
    /// Where bundles and results are.
    pub store: Store,
    /// Where lines go.
    pub logs: LogSink,
    /// Where progress goes.
    pub status: StatusFeed,
    /// What the installation decides.
    pub settings: RunSettings,
    /// How long the store may fail to take results.
    pub patience: Patience,
    /// How long the results of a job may take to be saved.
    pub saving: Patience,
}

/// How an attempt came to its end.
enum Ended {
    /// The runner said how.
    Told(Box<RunOutcome>),
    /// Its supervisor is gone, and its directory is here.
    Lost,
    /// It was lost with its place, or its directory is gone: nothing of it is here.
    Vanished,
    /// There was nothing to run.
    NotRun(Outcome),
}

#[async_trait]
impl Step for Invoke {
    const NAME: StepName = StepName::Invoke;
    type In = Staged;
    type Out = Invoked;

    async fn run(&self, job: &Context, fact: Staged) -> Result<Invoked, StepError> {
        if let Some(outcome) = fact.outcome {
            return Ok(Invoked::passed_on(outcome));
        }
        let (workspace, id) = (&job.workspace, job.job);
        // Also of what comes without the loop that gives out slots, as what was begun before.
        if !self.seats.take(workspace, id).await? {
            return Err(StepError::Held);
        }
        let ran = self.seated(job, fact).await;
        // While another worker is at it, the seat is that one's.
        if let Err(error) = &ran
            && !matches!(error, StepError::Busy { .. })
        {
            self.seats.give_back(workspace, id).await?;
        }
        ran
    }

    async fn begun_here(&self) -> Result<Vec<JobId>, StepError> {
        claims::begun_here(&self.claims, &*self.executor).await
    }

    /// It has a seat, whatever a limit says that is new: others wait for it.
    async fn takes_up(&self, workspace: &str, job: JobId) -> Result<(), StepError> {
        Ok(self.seats.take(workspace, job).await.map(drop)?)
    }

    async fn settled(&self, job: &Context) -> Result<(), StepError> {
        claims::finish(&self.claims, job.job).await?;
        self.seats.leave(&job.workspace, job.job).await?;
        Ok(self.holds.drop_of_ended(job.job).await?)
    }
}

impl Invoke {
    /// What a job that has a seat comes to.
    async fn seated(&self, job: &Context, fact: Staged) -> Result<Invoked, StepError> {
        if self.holds.keeps_waiting(job.job).await? {
            return Err(StepError::Held);
        }
        let snapshot = job.snapshot(&self.store).await?;
        // What somebody has begun with is gone on with also where another could not be begun.
        if let Some(needed) = self.lacks(&snapshot)
            && !self.holds.is_claimed(job.job).await?
        {
            return Err(self.not_here(job, &snapshot, &needed).await);
        }
        let held = match self.claims.take(job.job).await? {
            Grant::Held(held) => held,
            Grant::Busy(after) => return Err(StepError::Busy { after }),
            Grant::Settled => return self.settled_before(job, &snapshot).await,
        };
        fault::point(Self::NAME, Point::Claimed).await;
        // The claim is kept for as long as anything is done under it: fetching, running, saving.
        let run = |attempt| RunName { job: job.job, attempt };
        tokio::select! {
            biased;
            done = self.under_claim(job, &fact, &snapshot, &held) => done,
            gone = held.keep(&*self.executor, run) => Err(gone.into()),
        }
    }

    /// The control plane has ended the job and was kept from saying so.
    async fn settled_before(
        &self,
        job: &Context,
        snapshot: &Snapshot,
    ) -> Result<Invoked, StepError> {
        let outcome = match &snapshot.queue_limit {
            Some(limit) => control::not_in_time(&self.ends, job.job, limit).await?,
            None => Outcome::Cancelled { message: CANCELLED.to_owned() },
        };
        Ok(Invoked::passed_on(outcome))
    }

    async fn under_claim(
        &self,
        job: &Context,
        staged: &Staged,
        snapshot: &Snapshot,
        held: &Held<'_>,
    ) -> Result<Invoked, StepError> {
        loop {
            let run = RunName { job: job.job, attempt: held.attempt().await };
            let ended = self.attempt(job, staged, snapshot, held, run).await?;
            let is_here = !matches!(ended, Ended::Vanished);
            let start = held.start().await;
            let told = match ended {
                Ended::NotRun(outcome) => {
                    return self.not_run(job, snapshot, held, run, outcome).await;
                }
                Ended::Told(told) => self.with_what_it_left(snapshot, run, *told).await?,
                Ended::Lost => lost::told(lost::SUPERVISOR, start.as_ref()),
                Ended::Vanished => lost::told(lost::PLACE, start.as_ref()),
            };
            let end = AttemptEnd {
                attempt: run.attempt,
                place: start.map_or_else(|| self.claims.place().to_owned(), |start| start.place),
                started_at: told.started_at,
                ended_at: told.ended_at,
                outcome: launch::outcome(&told),
            };
            if end.outcome.permits_another_attempt()
                && self.may_try_again(job, snapshot, run).await?
            {
                tracing::warn!(attempt = %run.attempt, reason = told.message, "attempting again");
                held.next_attempt(end).await?;
                continue;
            }
            let told = lost::counted(told, run.attempt);
            if is_here && told.failure == Some(Failure::WorkerLost) {
                self.keep_output(snapshot, run)?;
            }
            let invoked = if is_here {
                self.told(job, run, snapshot, held, told).await?
            } else {
                Invoked::passed_on(self.decide(job, launch::outcome(&told)).await?)
            };
            let mut attempts = held.past().await;
            end.add_to(&mut attempts);
            return Ok(Invoked { attempts, ..invoked });
        }
    }

    /// One attempt, from wherever it stands to its end.
    async fn attempt(
        &self,
        job: &Context,
        staged: &Staged,
        snapshot: &Snapshot,
        held: &Held<'_>,
        run: RunName,
    ) -> Result<Ended, StepError> {
        let begun = held.begun(&*self.executor, run).await?;
        if matches!(begun, Begun::Gone) {
            return Ok(Ended::Vanished);
        }
        if matches!(begun, Begun::No) {
            // A later attempt follows one that was started in time.
            if let Some(limit) = snapshot.queue_limit.filter(QueueLimit::is_over)
                && run.attempt == Attempt::FIRST
            {
                return Ok(Ended::NotRun(control::not_in_time(&self.ends, job.job, &limit).await?));
            }
            match self.ends.decided(job.job).await? {
                None => {}
                Some(Decision::Cancel) => {
                    let message = CANCELLED.to_owned();
                    return Ok(Ended::NotRun(Outcome::Cancelled { message }));
                }
                // The agent has run to its end; only its directory is gone.
                Some(Decision::Closed) => return Ok(Ended::Vanished),
            }
            // A hold that came just before the claim: the claim is kept, and the agent waits.
            if self.holds.is_held(job.job).await? {
                return Err(StepError::Held);
            }
            if let Some(needed) = self.lacks(snapshot) {
                held.release().await?;
                return Err(self.not_here(job, snapshot, &needed).await);
            }
            if let Some(outcome) = self.start(job, staged, snapshot, held, run).await? {
                return Ok(Ended::NotRun(outcome));
            }
        }
        fault::point(Self::NAME, Point::Started).await;
        self.say(job, snapshot, held, Progress::Running).await;
        let running = Running::begins();
        let life = self.watch(job, snapshot, held, run).await?;
        drop(running);
        match life {
            Life::Ended(outcome) => {
                self.see_to_those_left(job, run, outcome.left).await?;
                return Ok(Ended::Told(outcome));
            }
            Life::Fresh | Life::Running | Life::Lost => self.executor.sweep(run).await?,
        }
        let is_here = self.executor.is_prepared(run).await?;
        Ok(if is_here { Ended::Lost } else { Ended::Vanished })
    }

    /// Starts the runner; an outcome when the run can never be.
    async fn start(
        &self,
        job: &Context,
        staged: &Staged,
        snapshot: &Snapshot,
        held: &Held<'_>,
        run: RunName,
    ) -> Result<Option<Outcome>, StepError> {
        // An agent whose success nothing could follow is not begun with.
        let action = &snapshot.spec.post_run_action;
        if let Err(refused) = self.actions.check(&action.kind, &action.config, &job.workspace) {
            let (code, message) = (Code::ActionMissing, bounded(refused.to_string()));
            return Ok(Some(Outcome::NotRun { code, message }));
        }
        let secrets = match self.secrets.open(&job.workspace, &snapshot.spec.secrets).await {
            Ok(secrets) => secrets,
            Err(error @ SecretsError::Missing { .. }) => {
                let (code, message) = (Code::SecretMissing, error.to_string());
                return Ok(Some(Outcome::NotRun { code, message }));
            }
            Err(SecretsError::Unavailable(error)) => return Err(StepError::retry(error)),
        };
        let plan = launch::plan(job, staged, snapshot, run, secrets, self)?;
        if let Err(error) = self.executor.prepare(run, &plan).await {
            // No runner was started: a run that cannot be prepared for too long is given up.
            return self.not_to_be(job, error).map(Some);
        }
        // Also the last look at the claim: nobody else may have taken it while it was filled.
        let asked = Instant::now();
        held.note_start().await?;
        let Err(error) = self.executor.start(run, &plan, asked).await else {
            self.patience.forget(job.job);
            return Ok(None);
        };
        let outcome = self.not_to_be(job, error)?;
        // No runner may begin after that; one that has is waited for.
        Ok(self.executor.close(run).await?.then_some(outcome))
    }

    /// Whether the spec allows another start of the agent, and nobody wants the end.
    async fn may_try_again(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        run: RunName,
    ) -> Result<bool, StepError> {
        Ok(run.attempt.0 < snapshot.max_attempts && self.ends.decided(job.job).await?.is_none())
    }

    /// Tells the world how far the agent is.
    async fn say(&self, job: &Context, snapshot: &Snapshot, held: &Held<'_>, progress: Progress) {
        let (attempt, past) = (held.attempt().await, held.past().await);
        self.status.say(job, &snapshot.name, attempt, &past, progress).await;
    }

    /// The agent ended and its runner says how: decide the end, save, tell.
    async fn told(
        &self,
        job: &Context,
        run: RunName,
        snapshot: &Snapshot,
        held: &Held<'_>,
        told: RunOutcome,
    ) -> Result<Invoked, StepError> {
        let outcome = self.decide(job, launch::outcome(&told)).await?;
        self.say(job, snapshot, held, Progress::Saving).await;
        let saved = self.save(job, snapshot, run, &told, outcome).await?;
        let Saved { outcome, results } = saved;
        let run = Some(self.run_of(run, &told));
        Ok(Invoked { outcome, run, results, attempts: Vec::new() })
    }

    fn run_of(&self, run: RunName, told: &RunOutcome) -> Run {
        Run {
            attempt: run.attempt,
            place: self.claims.place().to_owned(),
            started_at: told.started_at,
            invoked_at: told.invoked_at,
            ended_at: told.ended_at,
            usage: told.usage.map(launch::usage),
            log_lines: told.log_lines,
        }
    }

    /// Closes the job for cancels, or learns that one came first.
    async fn decide(&self, job: &Context, outcome: Outcome) -> Result<Outcome, StepError> {
        match self.ends.decide(job.job, Decision::Closed, self.claims.place()).await? {
            Decision::Closed => Ok(outcome),
            Decision::Cancel => {
                tracing::info!(
                    refused = outcome.code().map_or("succeeded", Code::as_str),
                    "the job was cancelled before its agent's end was reported: it stays cancelled"
                );
                Ok(Outcome::Cancelled { message: CANCELLED.to_owned() })
            }
        }
    }
}

impl From<executor::Error> for StepError {
    fn from(error: executor::Error) -> Self {
        Self::retry(error)
    }
}

impl From<Gone> for StepError {
    fn from(gone: Gone) -> Self {
        Self::retry(gone)
    }
}
