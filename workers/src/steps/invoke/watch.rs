//! Waiting for a run: passes on its log, keeps the claim and the lease, hears of a cancel.

use std::time::Duration;

use errand_runner::Life;
use tokio::time::Instant;

use super::Invoke;
use crate::claims::{Gone, Held};
use crate::executor::RunName;
use crate::logs::FeedError;
use crate::status::Progress;
use crate::step::{Context, StepError};

/// How often a run is looked at: often at first, for short runs, then less.
const LOOK_FIRST: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_millis(100);
const FIRST: Duration = Duration::from_secs(2);

/// How often a cancel is looked for.
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(250);

/// How often the claim is renewed; it is lost only after many times that.
const RENEW: Duration = Duration::from_secs(30);

impl Invoke {
    /// Waits until the run has ended or is lost, and all of its log is passed on.
    ///
    /// A worker that cannot reach the broker lets its agent run and passes nothing on until it
    /// is back. It does not renew the lease either: were it away for long, another worker may
    /// take over, and before that the runner must have ended the run.
    pub(super) async fn watch(
        &self,
        job: &Context,
        name: &str,
        held: &mut Held<'_>,
        run: RunName,
    ) -> Result<Life, StepError> {
        let log = self.executor.places(run).await?.log;
        let mut feed = self.logs.resume(&job.workspace, job.job, run.attempt).await?;
        let began = Instant::now();
        let (mut renew_at, mut cancel_at) = (began, began);
        let mut stopping = false;
        loop {
            let life = self.executor.look(run).await?;
            // Looked at before reading: what was written before the end is then read.
            let passed = feed.pump(&log).await;
            if life != Life::Running {
                passed?;
                return Ok(life);
            }
            match passed {
                Ok(()) => {}
                Err(FeedError::Fenced) => return self.give_way(run).await,
                Err(error) => tracing::warn!(%error, "log lines are passed on later"),
            }
            let now = Instant::now();
            if now >= renew_at {
                match held.renew().await {
                    Ok(()) => {
                        self.executor.renew(run).await?;
                        renew_at = now + RENEW;
                    }
                    Err(Gone::TakenOver) => return self.give_way(run).await,
                    Err(Gone::Broker(error)) => tracing::warn!(%error, "claim is renewed later"),
                }
            }
            if !stopping && now >= cancel_at {
                cancel_at = now + LOOK_FOR_CANCEL;
                if self.ends.is_cancelled(job.job).await.unwrap_or(false) {
                    self.executor.stop(run, "cancel").await?;
                    stopping = true;
                    let progress = Progress::Stopping;
                    self.status.say(&job.workspace, job.job, name, run.attempt, progress).await;
                }
            }
            let look = if now - began < FIRST { LOOK_FIRST } else { LOOK };
            tokio::time::sleep(look).await;
        }
    }

    /// Somebody else holds the claim by now: what runs here must end and counts for nothing.
    async fn give_way(&self, run: RunName) -> Result<Life, StepError> {
        self.executor.stop(run, "the claim was taken over").await?;
        Err(StepError::retry("the claim was taken over by another worker"))
    }
}

impl From<FeedError> for StepError {
    fn from(error: FeedError) -> Self {
        Self::retry(error)
    }
}
