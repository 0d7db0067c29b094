//! `outcome.json`: how the run ended, in the runner's view.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Fabric returned and the agent says that it succeeded.
    Succeeded,
    /// Fabric returned and the agent says that it failed.
    Failed,
    /// Fabric could not start or finish the invocation.
    Raised,
    /// The time limit struck.
    TimedOut,
    /// The worker asked for the end (`stop`), or its lease ran out.
    Stopped,
}

/// Why it did not succeed. Spelled as the platform's failure codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "`errand explain CODE` has a page for each")]
pub enum Failure {
    Timeout,
    AgentFailed,
    AgentCrashed,
    NoResult,
    AdapterMissing,
    AdapterProtocol,
    ModelAuth,
    ModelRateLimited,
    Cancelled,
    WorkerLost,
    DiskFull,
    SecretMissing,
    OomKilled,
    IdleTimeout,
    Unschedulable,
}

impl Failure {
    /// Every code that a runner can give.
    pub const ALL: [Self; 15] = [
        Self::Timeout,
        Self::AgentFailed,
        Self::AgentCrashed,
        Self::NoResult,
        Self::AdapterMissing,
        Self::AdapterProtocol,
        Self::ModelAuth,
        Self::ModelRateLimited,
        Self::Cancelled,
        Self::WorkerLost,
        Self::DiskFull,
        Self::SecretMissing,
        Self::OomKilled,
        Self::IdleTimeout,
        Self::Unschedulable,
    ];
}

/// Tokens, as the adapter reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
}

/// What the supervisor leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Format version; 1.
    pub version: u32,
    /// How it ended.
    pub end: End,
    /// The code; `None` only for [`End::Succeeded`].
    pub failure: Option<Failure>,
    /// One sentence for a person; empty on success.
    pub message: String,
    /// Whether a process of the agent was ended by a signal or by the limit, so that files may
    /// be half written.
    pub interrupted: bool,
    /// When the supervisor started.
    pub started_at: Timestamp,
    /// When the invocation began; `None` when it never did.
    pub invoked_at: Option<Timestamp>,
    /// When the last process was gone.
    pub ended_at: Timestamp,
    /// The result `fabric_run_result`, in the reference's shape; set when Fabric returned.
    pub run_result: Option<Value>,
    /// The result `fabric_error`, in the reference's shape; set when it did not.
    pub error: Option<Value>,
    /// Token use, when reported.
    pub usage: Option<Usage>,
    /// Lines in `agent.log`.
    pub log_lines: u64,
    /// Processes that had to be killed because they outlived the agent.
    pub killed: u32,
    /// Processes that could not be killed, and may still be there.
    #[serde(default)]
    pub left: u32,
    /// Files of the working directory and the artifacts that hold the value of a secret.
    #[serde(default)]
    pub secrets_found: SecretsFound,
}

/// Where the value of a secret was found after the run, by the result that the file belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsFound {
    /// Paths in `output_workdir`, bounded; bytes that are not UTF-8 are written `\xNN`.
    pub workdir: Vec<String>,
    /// Paths in `output_artifacts`, bounded.
    pub artifacts: Vec<String>,
    /// Paths in `$ERRAND_RESULTS` of a post-run action, bounded; each begins with a result's name.
    #[serde(default)]
    pub results: Vec<String>,
    /// Whether the name of a file or directory holds one, as far as could be told: then names must
    /// not be told.
    #[serde(default)]
    pub names: bool,
    /// Whether something was not searched, for want of time or because it could not be read.
    #[serde(default)]
    pub unsearched: bool,
}

impl SecretsFound {
    /// What is to be said where nobody has searched.
    pub fn unknown() -> Self {
        Self { names: true, unsearched: true, ..Self::default() }
    }
}
