//! A job's log: from the run directory into the `LOGS` stream, and from there into the archive.

mod feed;
mod reader;

pub use feed::LogFeed;
pub(crate) use feed::{FeedError, give_up_if_full};
pub use reader::LogReader;

use std::sync::Arc;

use streams::broker::Broker;
use streams::id::{Attempt, JobId};

use crate::store::Store;

/// What takes the lines of runs.
#[derive(Clone)]
pub struct LogSink {
    broker: Arc<dyn Broker>,
    store: Store,
}

impl LogSink {
    /// Lines go to the broker, large amounts of them to the store.
    pub fn new(broker: Arc<dyn Broker>, store: Store) -> Self {
        Self { broker, store }
    }

    /// Goes on where the stream says that an attempt's log ends.
    pub(crate) async fn resume(
        &self,
        workspace: &str,
        job: JobId,
        attempt: Attempt,
    ) -> Result<LogFeed, FeedError> {
        LogFeed::resume(self.broker.clone(), self.store.clone(), workspace, job, attempt).await
    }
}
