//! One line of `agent.log`.

use serde::{Deserialize, Serialize};

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// The agent's standard output.
    Stdout,
    /// The agent's standard error.
    Stderr,
    /// The platform's own words about the run.
    Platform,
}

/// A line, masked and bounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Number within the attempt, from 1, without gaps.
    pub n: u64,
    /// When the runner read it (RFC 3339, UTC, microseconds).
    pub at: jiff::Timestamp,
    /// Its stream; order is kept within each.
    pub stream: LogStream,
    /// The text without its line end; bytes that are not UTF-8 are replaced.
    pub text: String,
}
