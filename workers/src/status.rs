//! Status messages that only Invoke can give: that the agent runs, and how far it is.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Map;
use streams::broker::{Broker, Expect, Publication};
use streams::id::{Attempt, JobId};
use streams::outcome::Status;
use streams::phase::Phase;
use streams::status::StatusMessage;
use streams::subject;

/// Publishes the progress of runs.
#[derive(Clone)]
pub struct StatusFeed(Arc<dyn Broker>);

/// A run's visible progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The agent runs.
    Running,
    /// Somebody cancelled it and it is being stopped.
    Stopping,
    /// It has ended; its results are being saved.
    Saving,
}

impl Progress {
    const fn token(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Saving => "saving",
        }
    }

    /// The sentence that users of the reference know, where it has one.
    const fn message(self) -> &'static str {
        match self {
            Self::Running => "Job is running",
            Self::Stopping => "Job is cancelling",
            Self::Saving => "Saving results",
        }
    }
}

impl StatusFeed {
    /// Publishes by means of a broker.
    pub fn new(broker: Arc<dyn Broker>) -> Self {
        Self(broker)
    }

    /// Says how far a run is. A message that is lost is no harm: the next fact says more.
    pub(crate) async fn say(
        &self,
        workspace: &str,
        job: JobId,
        name: &str,
        attempt: Attempt,
        progress: Progress,
    ) {
        let status = match progress {
            Progress::Stopping => Status::Cancelling,
            Progress::Running | Progress::Saving => Status::Active,
        };
        let message = StatusMessage {
            v: 1,
            job,
            workspace: workspace.to_owned(),
            name: name.to_owned(),
            at: Timestamp::now(),
            status,
            phase: Phase::Staged,
            attempt: Some(attempt),
            code: None,
            message: progress.message().to_owned(),
            details: Map::new(),
        };
        let publication = Publication {
            subject: subject::status(workspace, job),
            payload: serde_json::to_vec(&message).unwrap_or_default().into(),
            message_id: Some(format!("{job}:{attempt}:{}", progress.token())),
            expect: Expect::Any,
            traceparent: None,
        };
        if let Err(error) = self.0.publish(publication).await {
            tracing::warn!(%error, "could not publish a status message");
        }
    }
}
