//! Deleting a job: every trace of it, in an order in which each step can be taken again.

use streams::broker::{self, Broker};
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
    for phase in Phase::CHAIN {
        broker.purge(StreamName::of(phase), &subject::fact(phase, workspace, job)).await?;
    }
    broker.purge(StreamName::Status, &subject::status(workspace, job)).await?;
    broker.purge(StreamName::Logs, &subject::logs(workspace, job)).await?;
    for bucket in Bucket::ALL {
        broker.remove(bucket, &job.to_string()).await?;
    }
    store.delete_below(&key::job(workspace, job)).await?;
    Ok(records.jobs().forget(job).await?)
}

impl From<Error> for super::error::ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Records(error) => error.into(),
            Error::Broker(error) => error.into(),
            Error::Store(error) => error.into(),
        }
    }
}
