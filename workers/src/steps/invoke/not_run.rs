//! What becomes of a job whose agent is not started, now or ever.

use errand_runner::Life;
use streams::code::Code;
use streams::fact::{Invoked, Produced};
use streams::id::Attempt;
use streams::outcome::{Outcome, bounded};
use streams::snapshot::Snapshot;

use super::save::Saved;
use super::{Invoke, lost};
use crate::claims::Held;
use crate::control::CANCELLED;
use crate::executor::{self, RunName};
use crate::step::{Context, StepError};

impl Invoke {
    /// A run that can never be is an outcome; one that cannot be now is tried again, unless that
    /// has gone on for too long.
    pub(super) fn not_to_be(
        &self,
        job: &Context,
        error: executor::Error,
    ) -> Result<Outcome, StepError> {
        let (code, message, is_passing) = match error {
            executor::Error::Impossible(message) => (Code::StageFailed, message, false),
            executor::Error::Unschedulable(message) => (Code::Unschedulable, message, false),
            executor::Error::Full(message) => (Code::DiskFull, message, true),
            executor::Error::Unavailable(message) => (Code::StageFailed, message, true),
        };
        if is_passing && !self.patience.is_over(job.job) {
            return Err(StepError::retry(message));
        }
        self.patience.forget(job.job);
        Ok(Outcome::NotRun { code, message: bounded(message) })
    }

    /// The end is not closed for this: no agent has ended, and a worker that comes after us must
    /// come to the same reason again.
    pub(super) async fn not_run(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        held: &Held<'_>,
        run: RunName,
        outcome: Outcome,
    ) -> Result<Invoked, StepError> {
        let cancelled = self.ends.is_cancelled(job.job).await?;
        let message = CANCELLED.to_owned();
        let outcome = if cancelled { Outcome::Cancelled { message } } else { outcome };
        let invoked = match run.attempt.0.checked_sub(1).map(Attempt) {
            Some(before) if before >= Attempt::FIRST => {
                self.left_before(job, snapshot, RunName { attempt: before, ..run }, outcome).await?
            }
            _ => Invoked::passed_on(outcome),
        };
        Ok(Invoked { attempts: held.past().await, ..invoked })
    }

    /// An attempt is not followed by the next one after all: what it left is the job's.
    async fn left_before(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        run: RunName,
        outcome: Outcome,
    ) -> Result<Invoked, StepError> {
        if !self.executor.is_prepared(run).await? {
            return Ok(Invoked::passed_on(outcome));
        }
        let told = match self.executor.look(run).await? {
            Life::Ended(told) => *told,
            Life::Fresh | Life::Running | Life::Lost => {
                self.keep_output(snapshot, run)?;
                lost::told(lost::SUPERVISOR, None)
            }
        };
        let Saved { outcome, results } = self.save(job, snapshot, run, &told, outcome).await?;
        let run = Some(self.run_of(run, &told));
        Ok(Invoked { outcome, run, results, attempts: Vec::new() })
    }
}
