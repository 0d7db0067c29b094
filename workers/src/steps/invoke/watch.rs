//! Waiting for a run: passes on its log, keeps the claim and the lease, hears of a cancel.

use std::time::Duration;

use errand_runner::Life;
use streams::snapshot::Snapshot;
use tokio::time::Instant;

use super::Invoke;
use crate::claims::Held;
use crate::executor::{RunName, SLACK};
use crate::logs::{FeedError, give_up_if_full};
use crate::status::Progress;
use crate::step::{Context, StepError};

/// How often a run is looked at: often at first, for short runs, then less.
const LOOK_FIRST: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_millis(100);
const FIRST: Duration = Duration::from_secs(2);

/// How often a cancel is looked for.
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(250);

impl Invoke {
    /// Waits until the run has ended or is lost, and all of its log is passed on.
    ///
    /// A worker that cannot reach the broker lets its agent run, until the lease runs out, and
    /// passes nothing on until it is back. What fails here meanwhile is said and tried again.
    pub(super) async fn watch(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        held: &Held<'_>,
        run: RunName,
    ) -> Result<Life, StepError> {
        let log = self.executor.places(run, &snapshot.spec.agent.config)?.log;
        let mut feed = self.logs.resume(&job.workspace, job.job, run.attempt).await?;
        let began = Instant::now();
        let mut overdue = began.checked_add(self.longest(snapshot));
        let mut cancel_at = began;
        let mut stopping = false;
        loop {
            let life = self.executor.look(run).await?;
            // Looked at before reading: what was written before the end is then read.
            let passed = feed.pump(&log).await;
            if life != Life::Running {
                self.end_of_log(job, passed)?;
                return Ok(life);
            }
            match passed {
                Err(error @ FeedError::Fenced) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "log lines are passed on later"),
                Ok(()) => {}
            }
            let now = Instant::now();
            if !stopping && now >= cancel_at {
                cancel_at = now + LOOK_FOR_CANCEL;
                if self.ends.is_cancelled(job.job).await.unwrap_or(false) {
                    stopping = self.stop(run, "cancel").await;
                    self.say(job, snapshot, held, Progress::Stopping).await;
                }
            }
            if overdue.is_some_and(|overdue| now >= overdue) {
                tracing::error!("the runner does not end its run, and is ended itself");
                self.executor.end_runner(run).await?;
                overdue = now.checked_add(SLACK);
            }
            let look = if now - began < FIRST { LOOK_FIRST } else { LOOK };
            tokio::time::sleep(look).await;
        }
    }

    /// What the store does not take of the log must not keep the results from being saved.
    fn end_of_log(&self, job: &Context, passed: Result<(), FeedError>) -> Result<(), FeedError> {
        match passed {
            Err(FeedError::Store(error)) if self.saving.is_over(job.job) => {
                tracing::error!(%error, "the end of the log is given up");
                Ok(())
            }
            passed => give_up_if_full(passed),
        }
    }

    /// No end is told while something of the run lives, for as long as there is patience.
    pub(super) async fn see_to_those_left(
        &self,
        job: &Context,
        run: RunName,
        left: u32,
    ) -> Result<(), StepError> {
        if left == 0 {
            return Ok(());
        }
        if let Err(error) = self.executor.sweep(run).await {
            if !self.patience.is_over(job.job) {
                return Err(error.into());
            }
            tracing::error!(%error, "processes of the run stay; the system has to be looked at");
        }
        self.patience.forget(job.job);
        Ok(())
    }

    /// How long a run may take whose runner does what it should.
    fn longest(&self, snapshot: &Snapshot) -> Duration {
        let limit = Duration::try_from_secs_f64(snapshot.timeout_seconds).unwrap_or(Duration::MAX);
        limit.saturating_add(self.settings.grace).saturating_add(SLACK)
    }

    async fn stop(&self, run: RunName, reason: &str) -> bool {
        let stopped = self.executor.stop(run, reason).await;
        if let Err(error) = &stopped {
            tracing::warn!(%error, "the run is stopped later");
        }
        stopped.is_ok()
    }
}

impl From<FeedError> for StepError {
    fn from(error: FeedError) -> Self {
        Self::retry(error)
    }
}
