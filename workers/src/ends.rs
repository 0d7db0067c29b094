//! Ends: who decided how a job ends. The first to create the key wins, for ever.

use std::sync::Arc;

use jiff::Timestamp;
use streams::broker::{Broker, Error};
use streams::claim::{Decision, End};
use streams::id::JobId;
use streams::topology::Bucket;

/// The decisions about the ends of jobs.
#[derive(Clone)]
pub struct Ends(Arc<dyn Broker>);

impl Ends {
    /// Decisions are kept by the broker.
    pub fn new(broker: Arc<dyn Broker>) -> Self {
        Self(broker)
    }

    /// Decides, unless it is decided; says what holds.
    pub async fn decide(&self, job: JobId, wish: Decision, by: &str) -> Result<Decision, Error> {
        let end = End { v: 1, decided: wish, by: by.to_owned(), at: Timestamp::now() };
        let value = serde_json::to_vec(&end).unwrap_or_default();
        if self.0.create(Bucket::Ends, &job.to_string(), value.into()).await?.is_some() {
            return Ok(wish);
        }
        Ok(self.decided(job).await?.unwrap_or(wish))
    }

    /// What is decided, if anything is.
    pub async fn decided(&self, job: JobId) -> Result<Option<Decision>, Error> {
        let entry = self.0.get(Bucket::Ends, &job.to_string()).await?;
        Ok(entry
            .and_then(|entry| serde_json::from_slice::<End>(&entry.value).ok())
            .map(|end| end.decided))
    }

    /// Whether somebody cancelled the job before its agent had ended.
    pub async fn is_cancelled(&self, job: JobId) -> Result<bool, Error> {
        Ok(self.decided(job).await? == Some(Decision::Cancel))
    }
}
