//! What is told of a job's attempts: the column `run`. Which of them runs now is not here.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use streams::attempt::AttemptEnd;
use streams::fact::Run;

/// The attempt that counts, beside it all of them, and what the next one waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Runs {
    #[serde(flatten)]
    pub(super) counts: Option<Run>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attempts: Vec<AttemptEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) waits: Option<Waits>,
}

/// What a worker says of a job that it cannot begin with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Waits {
    pub(super) details: Map<String, Value>,
    pub(super) at: Timestamp,
}

impl Runs {
    /// Takes in what a fact says; the first that says something counts.
    pub(super) fn proved(&mut self, run: Option<&Run>, attempts: &[AttemptEnd]) {
        if self.counts.is_none() {
            self.counts = run.cloned();
        }
        if self.attempts.is_empty() {
            self.attempts = attempts.to_vec();
        }
    }

    /// Takes in what the job waits for; the newest word counts.
    pub(super) fn waits(&mut self, at: Timestamp, details: &Map<String, Value>) {
        if self.waits.as_ref().is_none_or(|known| known.at < at) {
            self.waits = Some(Waits { details: details.clone(), at });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
