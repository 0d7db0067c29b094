//! Log batches: lines of one job, numbered through, on `logs.<workspace>.<job-id>`.
//!
//! A batch is published behind exactly the batch before it (the server compares the subject's
//! last sequence), so two workers that both think that they run the job cannot interleave.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Attempt, JobId};
use crate::schema::DateTime;
use crate::snapshot::ObjectRef;

/// A job's lines ride in messages up to so many bytes, then in chunks in the store.
pub const INLINE_LIMIT_BYTES: u64 = 8 * 1024 * 1024;

/// Some lines of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogBatch {
    /// Format version; 1.
    pub v: u32,
    /// The job.
    pub job: JobId,
    /// Its workspace.
    pub workspace: String,
    /// The attempt that wrote them.
    pub attempt: Attempt,
    /// Number of the first line within the job, from 1.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// How many of them are blank; older batches do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blank: Option<u64>,
    /// Sequence in the stream of the batch before; 0 for the first.
    pub prev: u64,
    /// How far into the attempt's log file this batch reaches, in bytes: where a worker that
    /// takes over goes on.
    pub offset: u64,
    /// Bytes of all lines of the job up to here.
    pub total_bytes: u64,
    /// The lines.
    pub lines: Lines,
}

/// Where the lines are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// Here.
    Inline(Vec<LogLine>),
    /// In the store, as JSON lines.
    Stored(ObjectRef),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Number within the job, from 1, without gaps.
    pub n: u64,
    /// When the runner read it.
    #[schemars(with = "DateTime")]
    pub at: Timestamp,
    /// `stdout`, `stderr` or `platform`.
    pub stream: LogStream,
    /// The text.
    pub text: String,
}

impl LogLine {
    /// Whether there is nothing to be seen in it.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// The agent's standard output.
    Stdout,
    /// The agent's standard error.
    Stderr,
    /// The platform's own words about the run.
    Platform,
}
