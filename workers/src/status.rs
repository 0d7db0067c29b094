//! Status messages that only Invoke can give: that the agent runs, how far it is, and what it
//! waits for.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, json};
use streams::attempt::AttemptEnd;
use streams::broker::{Broker, Expect, Publication};
use streams::id::Attempt;
use streams::outcome::Status;
use streams::phase::Phase;
use streams::status::StatusMessage;
use streams::subject;

use crate::step::Context;

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
        job: &Context,
        name: &str,
        attempt: Attempt,
        past: &[AttemptEnd],
        progress: Progress,
    ) {
        let status = match progress {
            Progress::Stopping => Status::Cancelling,
            Progress::Running | Progress::Saving => Status::Active,
        };
        let mut details = Map::new();
        if !past.is_empty() {
            details.insert("attempts".to_owned(), json!(past));
        }
        let message = StatusMessage {
            status,
            attempt: Some(attempt),
            message: progress.message().to_owned(),
            details,
            ..pending(job, name)
        };
        self.publish(&message, format!("{}:{attempt}:{}", job.job, progress.token())).await;
    }

    /// Says what a job waits for that no worker has who looked at it. Said at each look: within
    /// the server's memory of ids that is once.
    pub(crate) async fn waits(&self, job: &Context, name: &str, what: &str) {
        let message = StatusMessage {
            message: format!("no worker offers {what}"),
            details: Map::from_iter([("waiting_for".to_owned(), what.into())]),
            ..pending(job, name)
        };
        self.publish(&message, format!("{}:waits:{what}", job.job)).await;
    }

    async fn publish(&self, message: &StatusMessage, message_id: String) {
        let publication = Publication {
            subject: subject::status(&message.workspace, message.job),
            payload: serde_json::to_vec(message).unwrap_or_default().into(),
            message_id: Some(message_id),
            expect: Expect::Any,
            traceparent: None,
        };
        if let Err(error) = self.0.publish(publication).await {
            tracing::warn!(%error, "could not publish a status message");
        }
    }
}

/// A job that waits for its agent's start.
fn pending(job: &Context, name: &str) -> StatusMessage {
    StatusMessage {
        v: 1,
        job: job.job,
        workspace: job.workspace.clone(),
        name: name.to_owned(),
        at: Timestamp::now(),
        status: Status::Pending,
        phase: Phase::Staged,
        attempt: None,
        code: None,
        message: String::new(),
        details: Map::new(),
    }
}
