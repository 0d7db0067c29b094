//! The snapshot: everything a job runs with, fixed at submission, and no secret's value.
//!
//! Later edits to the agent, its environment or a fileset do not change it: filesets are pinned
//! by the content address of their listing, bundles by the key and digest of the object.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::outcome::Status;
use crate::schema::DateTime;

/// An object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRef {
    /// Its key within the bucket.
    pub key: String,
    /// Its length in bytes.
    pub size: u64,
    /// The hexadecimal SHA-256 of its bytes.
    pub sha256: String,
}

/// A value that rides in the message while it is small, and in the store when it is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The value itself.
    Inline(Value),
    /// Where its JSON is.
    Stored(ObjectRef),
}

/// What a submitted job runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The job's name.
    pub name: String,
    /// The prompt: the request's, or the agent's default.
    pub input: String,
    /// The user's context, without `nemo_helix`.
    pub context: Map<String, Value>,
    /// Limit of the invocation in seconds.
    pub timeout_seconds: f64,
    /// The run ends when the agent has written nothing for so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<f64>,
    /// How long the job may wait for its agent's first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<QueueLimit>,
    /// How often the agent may be started at most.
    pub max_attempts: u32,
    /// Paths in the working directory where an agent that succeeds must have left a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_files: Vec<String>,
    /// Who is told of the job's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// What the API shows as `spec`.
    pub spec: Spec,
    /// What the working directory is filled with first.
    pub base: Option<Source>,
    /// What is laid over it, in order.
    pub mounts: Vec<Mount>,
    /// The files beside agent.yaml.
    pub ethos: Option<Source>,
    /// The image to run in; none leaves the choice to the executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What `spec.compute` asks for, in base units.
    #[serde(default)]
    pub resources: Resources,
}

/// Who is told of a job's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notify {
    /// The ends that are told; empty for all of them.
    pub on: Vec<Status>,
    /// Where to and how, as the action `agents.webhook` is configured.
    pub webhook: Map<String, Value>,
}

impl Notify {
    /// Whether an end is told.
    pub fn wants(&self, end: Status) -> bool {
        self.on.is_empty() || self.on.contains(&end)
    }
}

/// How long a job may wait for its agent's first start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueLimit {
    /// As it was asked for, in seconds.
    pub seconds: f64,
    /// When it strikes.
    #[schemars(with = "DateTime")]
    pub at: Timestamp,
}

impl QueueLimit {
    /// The limit of a job that is submitted now; a time that no clock can show limits nothing.
    pub fn from_now(seconds: f64) -> Option<Self> {
        let wait = SignedDuration::try_from_secs_f64(seconds).ok()?;
        let at = Timestamp::now().checked_add(wait).ok()?;
        Some(Self { seconds, at })
    }

    /// Whether it has struck.
    pub fn is_over(&self) -> bool {
        Timestamp::now() >= self.at
    }
}

/// What a job asks of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resources {
    /// What it may use.
    pub limits: Amounts,
    /// What is set aside for it.
    pub requests: Amounts,
}

/// Amounts of resources; what is absent was not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Amounts {
    /// Thousandths of a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
}

/// The part of the snapshot that the API shows, in the reference's shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// The request's spec with its defaults filled in.
    pub request: Value,
    /// The resolved and merged agent.
    pub agent: AgentSnapshot,
    /// `workspace/name` of the agent; absent for an inline one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ref: Option<String>,
    /// The working directory with canonical references.
    pub workdir: Option<Value>,
    /// The compute spec.
    pub compute: Option<Value>,
    /// Variable → secret reference, as typed.
    pub secrets: BTreeMap<String, String>,
    /// What follows a success.
    pub post_run_action: Action,
    /// The user's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Map<String, Value>>,
}

/// The agent as it was at submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSnapshot {
    /// Its registered name, or `config.name` of an inline one.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// The resolved and merged config.
    pub config: Value,
    /// Always `nemo-agents-spec-v1`.
    pub config_format: String,
}

/// A post-run action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// Its kind, for example `agents.noop`.
    pub kind: String,
    /// Its configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// Something that fills a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Part of a fileset's revision.
    Files {
        /// The listing: JSON lines of [`FileEntry`], sorted by path.
        listing: ObjectRef,
        /// A directory (no trailing slash; empty = all) or one file in it.
        path: String,
    },
    /// Part of a job's result.
    Bundle {
        /// The gzipped tar; its entries stand below one top-level directory.
        object: ObjectRef,
        /// A directory below that one (no trailing slash; empty = all) or one file.
        path: String,
    },
}

/// A source laid over the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Where: relative, normalised, no `..`.
    pub mount_path: String,
    /// What.
    pub source: Source,
}

/// A file of a fileset's revision; its bytes are the blob of its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Relative path.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Bytes.
    pub size: u64,
    /// The hexadecimal SHA-256 of its bytes.
    pub sha256: String,
}
