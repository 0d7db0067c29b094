//! Clears up at one place: run directories of jobs that are finished.
//!
//! A directory stays until the job's last fact stands and has had time to reach the disk of the
//! queue; until then it is all that is known of the run.

use std::sync::Arc;
use std::time::Duration;

use errand_runner::Life;
use jiff::{SignedDuration, Timestamp};
use streams::broker::Broker;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, StreamName};
use tokio_util::sync::CancellationToken;

use crate::executor::{Executor, RunName};
use crate::step::StepError;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(30);

/// The embedded queue syncs its files every ten seconds.
const SYNCED_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// A run whose job is known nowhere any more was cleared from the streams or deleted; it stays
/// for a while all the same, should the queue come back with less than it had.
const GONE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// What clearing up looks at.
pub struct Janitor {
    /// Facts and claims.
    pub broker: Arc<dyn Broker>,
    /// The directories.
    pub executor: Arc<dyn Executor>,
}

impl Janitor {
    /// Clears up until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            match self.executor.runs().await {
                Ok(runs) => self.clear(runs).await,
                Err(error) => tracing::warn!(%error, "could not list run directories"),
            }
        }
    }

    /// One directory that cannot be removed does not keep the others.
    async fn clear(&self, runs: Vec<RunName>) {
        for run in runs {
            match self.is_finished(run).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    tracing::warn!(%run, %error, "could not look after a run directory");
                    continue;
                }
            }
            match self.executor.remove(run).await {
                Ok(()) => tracing::info!(%run, "removed the directory of a finished run"),
                Err(error) => tracing::warn!(%run, %error, "could not remove a run directory"),
            }
        }
    }

    /// That the facts are gone proves nothing by itself: a queue that lost them needs the
    /// directory more than anybody.
    async fn is_finished(&self, run: RunName) -> Result<bool, StepError> {
        let archived = subject::fact_of(Phase::Archived, run.job);
        let stream = StreamName::of(Phase::Archived);
        if let Some(fact) = self.broker.next(stream, &archived, 0).await? {
            return Ok(since(fact.at) > SYNCED_AFTER);
        }
        let Life::Ended(outcome) = self.executor.look(run).await? else { return Ok(false) };
        let claim = self.broker.get(Bucket::Claims, &run.job.to_string()).await?;
        Ok(claim.is_none() && since(outcome.ended_at) > GONE_AFTER)
    }
}

fn since(then: Timestamp) -> SignedDuration {
    Timestamp::now().duration_since(then)
}
