//! `launch.json`: everything the runner needs to know, and no secret.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The shortest value of a secret, in bytes, that is masked.
pub const SHORTEST_MASKED: usize = 8;

/// `secrets.json`: values that the runner takes from there, and the disk keeps no longer.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenSecrets")]
pub struct Secrets {
    /// Variables of the agent.
    pub variables: BTreeMap<String, String>,
    /// Values that it does not get and may meet all the same, in what another run left: they are
    /// masked, too.
    pub masked: Vec<String>,
}

/// The same as a worker wrote it. One of the release before, that runs on while this one is
/// installed, writes variables alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenSecrets {
    Both { variables: BTreeMap<String, String>, masked: Vec<String> },
    Variables(BTreeMap<String, String>),
}

impl From<WrittenSecrets> for Secrets {
    fn from(written: WrittenSecrets) -> Self {
        let (variables, masked) = match written {
            WrittenSecrets::Both { variables, masked } => (variables, masked),
            WrittenSecrets::Variables(variables) => (variables, Vec::new()),
        };
        Self { variables, masked }
    }
}

impl Secrets {
    /// Whether there is nothing to be kept.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.masked.is_empty()
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.variables.values().chain(&self.masked).map(String::as_str)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.variables.keys().collect();
        f.debug_struct("Secrets").field("variables", &names).finish_non_exhaustive()
    }
}

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
    /// The run ends when the agent has written nothing for so many seconds; `None` = never.
    #[serde(default)]
    pub idle_timeout_seconds: Option<f64>,
    /// Seconds between TERM and KILL when the run is stopped.
    pub grace_seconds: f64,
    /// The run ends, or never begins, when `lease` was not renewed for so many seconds; `None` = never.
    pub lease_seconds: Option<f64>,
    /// Plain variables of the agent (`NEMO_JOB_ID` and the like), beyond the runner's allow-list.
    pub env: BTreeMap<String, String>,
    /// Directories in which Fabric adapter descriptors are looked for.
    pub adapter_dirs: Vec<String>,
    /// The Python interpreter of Python adapters.
    pub python: Option<String>,
    /// What else outside the run directory the agent must be able to read.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// Bytes of stdout and of stderr of a script that are kept; what is beyond is counted and cut.
    pub output_limit_bytes: u64,
    /// What the agent's processes may use together.
    #[serde(default)]
    pub limits: Limits,
    /// The control group that they are put into; `None` where there is none to be had. Decided by
    /// the executor, as the next two are, whatever stands here before.
    #[serde(default)]
    pub cgroup: Option<Cgroup>,
    /// What keeps the agent away from the platform and from other runs.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Which network it sees.
    #[serde(default)]
    pub network: Network,
}

/// Limits of all processes of a run together; `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// A control group of its own for one run: made and limited by the executor, read, emptied and
/// removed by the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "version", rename_all = "snake_case")]
pub enum Cgroup {
    /// One directory of the unified hierarchy.
    V2 {
        /// Its path.
        path: PathBuf,
    },
    /// A directory in each of the old hierarchies, by controller (`memory`, `cpu`, `pids`,
    /// `freezer`); `unified` is one without controllers that knows `cgroup.kill`.
    V1 {
        /// Their paths.
        paths: BTreeMap<String, PathBuf>,
    },
}

/// How an agent is kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Sandbox {
    /// It is not: it runs as the platform does.
    #[default]
    None,
    /// Another user of this machine, who sees nothing of the platform's files but the run's own.
    User {
        /// User and group id, of this run alone while it lives.
        id: u32,
    },
    /// Landlock: it sees the system read-only and its own directories.
    Landlock,
}

/// Which network an agent sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The machine's.
    #[default]
    Host,
    /// None but a loopback of its own.
    None,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_the_release_before_are_read() {
        let variables = BTreeMap::from([("variables".to_owned(), "value".to_owned())]);
        let secrets = Secrets { variables: variables.clone(), masked: vec!["other".to_owned()] };
        let written = serde_json::to_value(&secrets).expect("it is JSON");
        assert!(serde_json::from_value::<Secrets>(written).expect("it is read") == secrets);
        let before = serde_json::from_value::<Secrets>(json!({"variables": "value"}));
        assert!(before.expect("it is read") == Secrets { variables, masked: Vec::new() });
        let shown = format!("{secrets:?}");
        assert!(!shown.contains("value\"") && !shown.contains("other"), "{shown}");
    }
}
