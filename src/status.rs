//! Status messages of the control plane. One that would take its job back is not published.
//!
//! Keepers, the API and workers publish on the same subject, each in its own time. Ours go out
//! with the last message in view, and the server refuses them when another came in between: then
//! the view is taken anew. What only a worker can say is in `workers::status`.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Map, Value};
use streams::broker::{self, Broker, Expect, Publication, Published};
use streams::envelope::MAX_PAYLOAD_BYTES;
use streams::id::JobId;
use streams::outcome::{Outcome, Status};
use streams::status::StatusMessage;
use streams::subject;
use streams::topology::StreamName;

use crate::records::Job;

/// How often the view is taken before the caller has to come back.
const TRIES: usize = 5;

/// Where a message of ours says whose it is, in its details.
const BY: &str = "by";

/// Who of us says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The projector.
    Projector,
    /// The API.
    Api,
}

/// Why the world was not told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The queue.
    #[error(transparent)]
    Broker(#[from] broker::Error),
    /// It has no JSON form.
    #[error("status of job {job} is no JSON: {source}")]
    Json {
        /// The job.
        job: JobId,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Others published without a pause.
    #[error("status of job {job} was overtaken {TRIES} times, publish it again")]
    Overtaken {
        /// The job.
        job: JobId,
    },
}

impl By {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Projector => "projector",
            Self::Api => "api",
        }
    }
}

/// Publishes a message unless what it says is known or passed; says whether it was published.
/// `message_id` is the same for whoever says the same.
pub async fn tell(
    broker: &dyn Broker,
    by: By,
    message_id: String,
    message: &StatusMessage,
) -> Result<bool, Error> {
    let job = message.job;
    let subject = subject::status(&message.workspace, job);
    let payload = encode(message, by).map_err(|source| Error::Json { job, source })?;
    let mut publication = Publication {
        subject,
        payload: payload.into(),
        message_id: Some(message_id),
        expect: Expect::Any,
        traceparent: None,
    };
    for _ in 0..TRIES {
        let last = broker.last(StreamName::Status, &publication.subject).await?;
        let seen = last.as_ref().map_or(Expect::Empty, |last| Expect::Last(last.sequence));
        if seen == publication.expect {
            // Nobody came in between: it was refused for its id, so it was published before.
            return Ok(false);
        }
        // What is no status message says nothing that could be passed.
        let told = last.and_then(|last| serde_json::from_slice(&last.payload).ok());
        if told.is_some_and(|told| is_past(&told, message)) {
            return Ok(false);
        }
        publication.expect = seen;
        if let Published::Stored(_) = broker.publish(publication.clone()).await? {
            return Ok(true);
        }
    }
    Err(Error::Overtaken { job })
}

/// Says that a job's end was asked for.
pub async fn tell_cancelling(broker: &dyn Broker, job: &Job) -> Result<bool, Error> {
    let message = asked(job, Status::Cancelling);
    tell(broker, By::Api, format!("{}:cancelling", job.id), &message).await
}

/// Says that a job is held back, or no longer.
pub async fn tell_held(broker: &dyn Broker, job: &Job) -> Result<bool, Error> {
    let message = asked(job, job.status);
    // A job may be held and let go any number of times: each is news.
    let message_id = format!("{}:{}:{}", job.id, job.status, message.at.as_microsecond());
    tell(broker, By::Api, message_id, &message).await
}

/// What is known of a job, as a message would say it.
pub fn known(job: &Job) -> StatusMessage {
    StatusMessage {
        v: 1,
        job: job.id,
        workspace: job.workspace.clone(),
        name: job.name.clone(),
        at: job.ended_at.unwrap_or_else(Timestamp::now),
        status: job.status,
        phase: job.phase,
        attempt: job.attempt,
        code: job.outcome.as_ref().and_then(Outcome::code),
        message: job.outcome.as_ref().map_or("", Outcome::message).to_owned(),
        details: job.status_details.clone(),
    }
}

/// What somebody asked for, as news of a job as it stands.
fn asked(job: &Job, status: Status) -> StatusMessage {
    let message = format!("Job is {status}");
    StatusMessage { at: Timestamp::now(), status, code: None, message, ..known(job) }
}

/// Whether one of us said it.
pub fn is_ours(message: &StatusMessage) -> bool {
    let by = message.details.get(BY);
    [By::Projector, By::Api].iter().any(|ours| by.is_some_and(|by| by == ours.as_str()))
}

/// Whether a job that was told to be there would be taken back by a message, or left in place.
fn is_past(told: &StatusMessage, message: &StatusMessage) -> bool {
    match told.phase.cmp(&message.phase) {
        Ordering::Greater => true,
        Ordering::Less => false,
        // Before its fact arrives here, a worker may have said more of the same phase.
        Ordering::Equal => {
            told.status == message.status
                || told.status.is_terminal()
                || rank(told.status) > rank(message.status)
        }
    }
}

/// How far a status is on the way through a phase. A pause may be entered and left again.
const fn rank(status: Status) -> u8 {
    match status {
        Status::Created => 0,
        Status::Pending => 1,
        Status::Active | Status::Pausing | Status::Paused | Status::Resuming => 2,
        Status::Cancelling => 3,
        Status::Completed | Status::Cancelled | Status::Error => 4,
    }
}

/// Details that would make the message too large to ride on NATS stay in the record.
fn encode(message: &StatusMessage, by: By) -> serde_json::Result<Vec<u8>> {
    let mut message = message.clone();
    let by = (BY.to_owned(), Value::from(by.as_str()));
    message.details.extend([by.clone()]);
    let payload = serde_json::to_vec(&message)?;
    if payload.len() <= MAX_PAYLOAD_BYTES {
        return Ok(payload);
    }
    message.details = Map::from_iter([by]);
    serde_json::to_vec(&message)
}

#[cfg(test)]
mod tests;
