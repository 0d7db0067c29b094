//! Status messages: one per visible change, on `status.<workspace>.<job-id>`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::Code;
use crate::id::{Attempt, JobId};
use crate::outcome::Status;
use crate::phase::Phase;
use crate::schema::DateTime;

/// What changed. The last message on a subject is the job's present state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusMessage {
    /// Format version; 1.
    pub v: u32,
    /// The job.
    pub job: JobId,
    /// Its workspace.
    pub workspace: String,
    /// Its name.
    pub name: String,
    /// When.
    #[schemars(with = "DateTime")]
    pub at: Timestamp,
    /// What users see.
    pub status: Status,
    /// The phase that the job has reached.
    pub phase: Phase,
    /// Which start of the agent it concerns; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Further details, as the API shows them in `status_details`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}
