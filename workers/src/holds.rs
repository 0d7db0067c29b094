//! Holds: jobs that somebody keeps from being started. A job that a worker has claimed is past
//! that: its agent may run already, and a hold that comes late changes nothing.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use streams::broker::{Broker, Error};
use streams::id::JobId;
use streams::topology::Bucket;

/// The holds on jobs.
#[derive(Clone)]
pub struct Holds(Arc<dyn Broker>);

impl Holds {
    /// Holds are kept by the broker.
    pub fn new(broker: Arc<dyn Broker>) -> Self {
        Self(broker)
    }

    /// Holds a job back; says whether it is held. Where somebody held it before, that one has
    /// found out whether it was in time, and nobody else takes the hold away.
    pub async fn hold(&self, job: JobId, by: &str) -> Result<bool, Error> {
        let note = json!({"v": 1, "by": by, "at": Timestamp::now()}).to_string();
        if self.0.create(Bucket::Holds, &job.to_string(), note.into()).await?.is_none() {
            return Ok(true);
        }
        // A worker claims and then looks here once more, so one of the two is seen.
        let claimed = self.is_claimed(job).await?;
        if claimed {
            self.release(job).await?;
        }
        Ok(!claimed)
    }

    /// Lets it go.
    pub async fn release(&self, job: JobId) -> Result<(), Error> {
        self.0.remove(Bucket::Holds, &job.to_string()).await
    }

    /// Nothing of a hold stays behind on a job that has run, or never will.
    pub(crate) async fn drop_of_ended(&self, job: JobId) -> Result<(), Error> {
        if self.is_held(job).await? { self.release(job).await } else { Ok(()) }
    }

    /// Whether somebody holds it.
    pub async fn is_held(&self, job: JobId) -> Result<bool, Error> {
        Ok(self.0.get(Bucket::Holds, &job.to_string()).await?.is_some())
    }

    /// Whether somebody holds it and no worker has begun with it.
    pub async fn keeps_waiting(&self, job: JobId) -> Result<bool, Error> {
        Ok(self.is_held(job).await? && !self.is_claimed(job).await?)
    }

    /// Whether a worker has begun with it.
    pub async fn is_claimed(&self, job: JobId) -> Result<bool, Error> {
        Ok(self.0.get(Bucket::Claims, &job.to_string()).await?.is_some())
    }
}

#[cfg(test)]
mod tests;
