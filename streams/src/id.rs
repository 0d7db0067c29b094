//! Ids: a job's UUID, and the names that are derived from it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::phase::Phase;

/// The prefix of a job's id on the HTTP surface.
const HTTP_PREFIX: &str = "platform-job-";

/// A job's id: a UUID, version 7 when we make it. Facts and object keys carry it plain; HTTP
/// shows `platform-job-` and its base58.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct JobId(Uuid);

/// The n-th start of the agent for a job, from 1.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Attempt(pub u32);

/// A word that is no job id.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no job id: expected a UUID or platform-job-<base58>")]
pub struct NoJobId(String);

impl JobId {
    /// A new id, ordered by time.
    #[expect(clippy::new_without_default, reason = "each call gives another value")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Wraps a UUID that somebody chose.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    /// The id on the HTTP surface.
    pub fn http(self) -> String {
        format!("{HTTP_PREFIX}{}", self.base58())
    }

    /// The base58 of its 16 bytes; what generated job names end in.
    pub fn base58(self) -> String {
        bs58::encode(self.0.as_bytes()).into_string()
    }

    /// The id of an attempt on the HTTP surface and in the agent's environment: made of the
    /// job's, so that everybody comes to the same.
    pub fn attempt_id(self, attempt: Attempt) -> String {
        let uuid = Uuid::new_v5(&self.0, attempt.to_string().as_bytes());
        format!("platform-job-attempt-{}", bs58::encode(uuid.as_bytes()).into_string())
    }

    /// The name of an attempt's task, likewise. The first has the job's own digits.
    pub fn task_name(self, attempt: Attempt) -> String {
        let uuid = match attempt {
            Attempt::FIRST => self.0,
            later => Uuid::new_v5(&self.0, format!("task {later}").as_bytes()),
        };
        format!("task-{}", uuid.simple())
    }

    /// The message id of this job's fact of a phase: the same for whoever publishes it.
    pub fn message_id(self, phase: Phase) -> String {
        format!("{self}:{phase}")
    }
}

impl Attempt {
    /// The first start.
    pub const FIRST: Self = Self(1);
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = NoJobId;

    fn from_str(word: &str) -> Result<Self, NoJobId> {
        let uuid = match word.strip_prefix(HTTP_PREFIX) {
            Some(base58) => {
                // Into a place of the right size: a long word is given up early.
                let mut bytes = [0; 16];
                let length = bs58::decode(base58).onto(&mut bytes);
                (length == Ok(bytes.len())).then(|| Uuid::from_bytes(bytes))
            }
            // Only the hyphenated form: subjects must have one spelling an id.
            None => Uuid::parse_str(word).ok().filter(|uuid| uuid.hyphenated().to_string() == word),
        };
        uuid.map(Self).ok_or_else(|| NoJobId(word.to_owned()))
    }
}

#[cfg(test)]
mod tests;
