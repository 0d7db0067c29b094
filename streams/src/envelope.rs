//! The envelope: what every message carries beside its payload, in the same JSON object.
//!
//! ```json
//! {"v":1,"job":"…","workspace":"default","at":"…","traceparent":"…", …payload…}
//! ```
//!
//! Readers ignore fields that they do not know and refuse versions that they do not know. A
//! submit fact may come from anybody: there every field of the envelope may be absent, and the
//! subject says which job it is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::broker::{self, Broker, Expect, Publication};
use crate::fact::Fact;
use crate::id::JobId;
use crate::subject::{self, FactSubject};
use crate::topology::StreamName;
use crate::trace::TraceParent;

/// The version that we write and the only one that there is.
pub const VERSION: u32 = 1;

/// Nothing of ours above this rides on NATS; larger parts go to the store.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// A fact together with what its message says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope<F> {
    /// The job.
    pub job: JobId,
    /// Its workspace.
    pub workspace: String,
    /// When it happened.
    pub at: Timestamp,
    /// W3C trace context of the submitter or of the step before.
    pub traceparent: Option<String>,
    /// The payload.
    pub fact: F,
}

/// The envelope's own fields.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    #[serde(default = "first_version")]
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

const fn first_version() -> u32 {
    VERSION
}

/// Bytes that are no fact.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    /// The subject is none of a fact.
    #[error(transparent)]
    Subject(#[from] subject::NoFactSubject),
    /// The subject is another phase's.
    #[error("subject '{subject}' carries no {expected} fact")]
    Phase {
        /// The subject.
        subject: String,
        /// The phase that was expected.
        expected: crate::phase::Phase,
    },
    /// The payload is not JSON, or not of the fact's form.
    #[error("payload is no valid {phase} fact: {source}")]
    Payload {
        /// The phase.
        phase: crate::phase::Phase,
        /// What serde says.
        source: serde_json::Error,
    },
    /// The version is one that we do not know.
    #[error("payload has version {0}, this program reads version {VERSION}")]
    Version(u32),
    /// Subject and payload name different jobs.
    #[error("payload names job {payload} in workspace '{workspace}', its subject is '{subject}'")]
    Mismatch {
        /// The job in the payload.
        payload: JobId,
        /// The workspace in the payload.
        workspace: String,
        /// The subject.
        subject: String,
    },
}

impl<F> Envelope<F> {
    /// The same job with another fact, as of now.
    pub fn with<G>(&self, fact: G) -> Envelope<G> {
        let (workspace, traceparent) = (self.workspace.clone(), self.traceparent.clone());
        Envelope { job: self.job, workspace, at: Timestamp::now(), traceparent, fact }
    }
}

impl<F: Fact> Envelope<F> {
    /// Where it is published.
    pub fn subject(&self) -> String {
        subject::fact(F::PHASE, &self.workspace, self.job)
    }

    /// Writes the message.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let head = Head {
            v: VERSION,
            job: Some(self.job),
            workspace: Some(self.workspace.clone()),
            at: Some(self.at),
            traceparent: self.traceparent.clone(),
        };
        let mut object = fields(&head)?;
        object.extend(fields(&self.fact)?);
        serde_json::to_vec(&object)
    }

    /// The message as every fact is published: to a subject that must be empty, under an id that
    /// is the same for whoever publishes it.
    pub fn publication(&self) -> Result<Publication, broker::Error> {
        let payload = self.encode().map_err(|error| broker::Error::Refused {
            what: format!("fact {} of job {}", F::PHASE, self.job),
            reason: error.to_string(),
        })?;
        Ok(Publication {
            subject: self.subject(),
            payload: payload.into(),
            message_id: Some(self.job.message_id(F::PHASE)),
            expect: Expect::Empty,
            traceparent: self.traceparent.clone(),
        })
    }

    /// The fact of a job, if it stands.
    pub async fn stored(
        broker: &dyn Broker,
        workspace: &str,
        job: JobId,
    ) -> Result<Option<Self>, broker::Error> {
        let subject = subject::fact(F::PHASE, workspace, job);
        let Some(stored) = broker.last(StreamName::of(F::PHASE), &subject).await? else {
            return Ok(None);
        };
        let read = Self::decode(&subject, &stored.payload, stored.at);
        read.map(Some)
            .map_err(|error| broker::Error::Refused { what: subject, reason: error.to_string() })
    }

    /// Reads a message. `stored_at` is when the server stored it, for submitters that say no
    /// time themselves.
    pub fn decode(
        subject: &str,
        payload: &[u8],
        stored_at: Timestamp,
    ) -> Result<Self, Undecodable> {
        let FactSubject { phase, workspace, job } = subject::parse_fact(subject)?;
        if phase != F::PHASE {
            return Err(Undecodable::Phase { subject: subject.to_owned(), expected: F::PHASE });
        }
        let bad = |source| Undecodable::Payload { phase, source };
        // An object and nothing else: serde would read an array as the fields in their order.
        let value: Map<String, Value> = serde_json::from_slice(payload).map_err(bad)?;
        let value = Value::Object(value);
        let head = Head::deserialize(&value).map_err(bad)?;
        if head.v != VERSION {
            return Err(Undecodable::Version(head.v));
        }
        let named = (head.job.unwrap_or(job), head.workspace.as_ref().unwrap_or(&workspace));
        if named != (job, &workspace) {
            return Err(Undecodable::Mismatch {
                payload: named.0,
                workspace: named.1.clone(),
                subject: subject.to_owned(),
            });
        }
        let fact = F::deserialize(value).map_err(bad)?;
        let at = head.at.unwrap_or(stored_at);
        // What is no trace context is ignored, as its specification asks; it goes into a header.
        let traceparent = head.traceparent.filter(|text| text.parse::<TraceParent>().is_ok());
        Ok(Self { job, workspace, at, traceparent, fact })
    }
}

/// The fields of something that serialises as an object.
fn fields(value: &impl Serialize) -> serde_json::Result<Map<String, Value>> {
    match serde_json::to_value(value)? {
        Value::Object(fields) => Ok(fields),
        other => Err(serde::ser::Error::custom(format!("expected an object, got {other}"))),
    }
}

#[cfg(test)]
mod tests;
