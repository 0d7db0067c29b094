//! Clears up at one place: run directories of jobs that are finished.
//!
//! A directory stays until the job's last fact stands and has had time to reach the disk of the
//! queue; until then it is all that is known of the run.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use streams::broker::Broker;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;
use tokio_util::sync::CancellationToken;

use crate::executor::{Executor, RunName};

/// How often it looks.
const LOOK: Duration = Duration::from_secs(30);

/// The embedded queue syncs its files every ten seconds.
const SYNCED_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// Clears up until told to stop.
pub async fn run(broker: Arc<dyn Broker>, executor: Arc<dyn Executor>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Err(error) = clear(&*broker, &*executor).await {
            tracing::warn!(error, "could not clear up run directories");
        }
    }
}

async fn clear(broker: &dyn Broker, executor: &dyn Executor) -> Result<(), String> {
    for run in executor.runs().await.map_err(|error| error.to_string())? {
        if is_finished(broker, run).await.map_err(|error| error.to_string())? {
            executor.remove(run).await.map_err(|error| error.to_string())?;
            tracing::info!(%run, "removed the directory of a finished run");
        }
    }
    Ok(())
}

/// Finished: its last fact stands for a while, or its facts have left the streams altogether.
async fn is_finished(broker: &dyn Broker, run: RunName) -> Result<bool, streams::broker::Error> {
    let archived = subject::fact_of(Phase::Archived, run.job);
    if let Some(fact) = broker.next(StreamName::of(Phase::Archived), &archived, 0).await? {
        return Ok(Timestamp::now().duration_since(fact.at) > SYNCED_AFTER);
    }
    let staged = subject::fact_of(Phase::Staged, run.job);
    Ok(broker.next(StreamName::of(Phase::Staged), &staged, 0).await?.is_none())
}
