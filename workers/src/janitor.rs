//! Clears up at one place: run directories of jobs that are finished.
//!
//! A directory stays until the job's last fact stands and has had time to reach the disk of the
//! queue; until then it is all that is known of the run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use errand_runner::Life;
use jiff::{SignedDuration, Timestamp};
use streams::broker::Broker;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, StreamName};
use tokio::time::Instant;
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
        let mut unknown = Unknown::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            match self.executor.runs().await {
                Ok(runs) => self.clear(runs, &mut unknown).await,
                Err(error) => tracing::warn!(%error, "could not list run directories"),
            }
        }
    }

    /// One directory that cannot be removed does not keep the others.
    async fn clear(&self, runs: Vec<RunName>, unknown: &mut Unknown) {
        unknown.retain(|run, _| runs.contains(run));
        for run in runs {
            match self.is_finished(run, unknown).await {
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
    async fn is_finished(&self, run: RunName, unknown: &mut Unknown) -> Result<bool, StepError> {
        let archived = subject::fact_of(Phase::Archived, run.job);
        let stream = StreamName::of(Phase::Archived);
        if let Some(fact) = self.broker.next(stream, &archived, 0).await? {
            return Ok(since(fact.at) > SYNCED_AFTER);
        }
        let life = self.executor.look(run).await?;
        let claim = self.broker.get(Bucket::Claims, &run.job.to_string()).await?;
        if claim.is_some() || life == Life::Running {
            unknown.remove(&run);
            return Ok(false);
        }
        // One that left no outcome cannot say since when; we can.
        let seen = *unknown.entry(run).or_insert_with(Instant::now);
        Ok(match life {
            Life::Ended(outcome) => since(outcome.ended_at) > GONE_AFTER,
            _ => seen.elapsed() > GONE_AFTER.unsigned_abs(),
        })
    }
}

/// Runs whose job is known nowhere, and since when that was seen.
type Unknown = HashMap<RunName, Instant>;

fn since(then: Timestamp) -> SignedDuration {
    Timestamp::now().duration_since(then)
}
