//! `launch.json`: everything the runner needs to know, and no secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The launch description of one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Format version; 1.
    pub version: u32,
    /// `<job uuid>-<attempt>`. Stands in the environment of every process of the run as
    /// `ERRAND_RUN`, so that leftovers can be found when the supervisor is gone.
    pub run: String,
    /// The job's name; Fabric's request id.
    pub job_name: String,
    /// The job's workspace.
    pub workspace: String,
    /// The resolved and merged agent definition (`nemo-agents-spec-v1`).
    pub agent: Value,
    /// The prompt.
    pub input: String,
    /// The request context, `nemo_helix` included. The runner adds `nemo_helix.deadline`.
    pub context: Map<String, Value>,
    /// Limit in seconds from the invocation on; starting the adapter is not counted.
    pub timeout_seconds: f64,
    /// Seconds between TERM and KILL when the run is stopped.
    pub grace_seconds: f64,
    /// The run ends when `lease` was not touched for so many seconds; `None` = never.
    pub lease_seconds: Option<f64>,
    /// Plain variables of the agent (`NEMO_JOB_ID` and the like), beyond the runner's allow-list.
    pub env: BTreeMap<String, String>,
    /// Directories in which Fabric adapter descriptors are looked for.
    pub adapter_dirs: Vec<String>,
    /// The Python interpreter of Python adapters.
    pub python: Option<String>,
    /// Bytes of stdout and of stderr of a script that are kept; what is beyond is counted and cut.
    pub output_limit_bytes: u64,
}
