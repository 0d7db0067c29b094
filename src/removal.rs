//! Removal: what a job leaves in queue, store and records, taken away in an order in which each
//! step can be taken again. When something is to go is decided by those who call.

use streams::broker::{self, Broker};
use streams::claim;
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, StreamName};
use workers::store::{self, Store, key};

use crate::records::{self, Records};

/// Why a job is not wholly removed yet. Its tombstone stands; call [`remove`] again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The records.
    #[error(transparent)]
    Records(#[from] records::Error),
    /// The queue.
    #[error(transparent)]
    Broker(#[from] broker::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Hides the job, then removes its messages, its keys, its objects and at last its record.
pub async fn remove(
    records: &Records,
    store: &Store,
    broker: &dyn Broker,
    workspace: &str,
    job: JobId,
) -> Result<(), Error> {
    records.jobs().tombstone(job).await?;
    purge(broker, workspace, job).await?;
    store.delete_below(&key::job(workspace, job)).await?;
    Ok(records.jobs().forget(job).await?)
}

/// Removes everything of a job that has ended from streams and buckets.
pub async fn purge(broker: &dyn Broker, workspace: &str, job: JobId) -> Result<(), broker::Error> {
    for (stream, subject) in subjects(workspace, job) {
        broker.purge(stream, &subject).await?;
    }
    for bucket in Bucket::ALL {
        broker.remove(bucket, &job.to_string()).await?;
    }
    broker.remove(Bucket::Claims, &claim::action_key(job)).await
}

/// Where a job's messages are. The facts come first and in the order of the chain: no step can
/// then make again what is gone, and a removal that was broken off leaves the last word.
fn subjects(workspace: &str, job: JobId) -> impl Iterator<Item = (StreamName, String)> {
    let facts = Phase::CHAIN
        .into_iter()
        .map(move |phase| (StreamName::of(phase), subject::fact(phase, workspace, job)));
    let logs = (StreamName::Logs, subject::logs(workspace, job));
    let status = (StreamName::Status, subject::status(workspace, job));
    facts.chain([logs, status])
}

#[cfg(test)]
mod tests;
