//! Failure codes: one enum, spelled the same in facts, records, results and on the command line.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which exit code of the command line a failure maps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// What the agent did: exit code 10.
    Agent,
    /// A limit of time struck: exit code 11.
    Time,
    /// Somebody cancelled: exit code 12.
    User,
    /// The platform, or what it was given to work with: exit code 13.
    Platform,
}

macro_rules! codes {
    ($($variant:ident $token:literal $blame:ident $meaning:literal $remedy:literal;)*) => {
        /// Why a job did not complete.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its spelling.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $token,)* }
            }

            /// Whose failure it is.
            pub const fn blame(self) -> Blame {
                match self { $(Self::$variant => Blame::$blame,)* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What to do about it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    Timeout "timeout" Time
        "The agent ran longer than timeout_seconds and was stopped."
        "Raise timeout_seconds, or give the agent less to do. What it had written is in output_workdir.";
    AgentFailed "agent_failed" Agent
        "The agent ended and said that it failed: a non-zero exit code, or a result with status failed."
        "Read the end of the job's log and fabric_run_result.";
    AgentCrashed "agent_crashed" Agent
        "The agent's process was ended by a signal."
        "Read the end of the job's log; the results are marked incomplete.";
    NoResult "no_result" Agent
        "The agent ended well but returned nothing, or left out a file that expect_files names."
        "Print the answer on standard output, or set allow_empty in the script harness's settings; the message names the files that are missing.";
    AdapterMissing "adapter_missing" Platform
        "The harness's Fabric adapter, or something that it requires, is not installed where the agent runs."
        "Install the adapter there, or name an image that has it.";
    AdapterProtocol "adapter_protocol" Platform
        "The Fabric adapter broke off or answered with something that is no reply."
        "Read fabric_error: it holds the end of the adapter's standard error.";
    ModelAuth "model_auth" Platform
        "The model provider refused the credentials."
        "Check the secret behind the model's api_key_env.";
    ModelRateLimited "model_rate_limited" Platform
        "The model provider refused the request for its rate."
        "Wait and run the job again, or ask the provider for more.";
    OomKilled "oom_killed" Agent
        "The agent needed more memory than its limit."
        "Raise limits.memory in the compute spec.";
    ImagePullFailed "image_pull_failed" Platform
        "The image could not be fetched."
        "Check the image's name, tag and the registry's credentials.";
    GpuUnavailable "gpu_unavailable" Platform
        "The job asks for a GPU and none can be had."
        "Drop the GPU from the compute spec, or run it where one is.";
    ActionMissing "action_missing" Platform
        "The post-run action is not present where the agent runs, or refuses its configuration there."
        "Install the action there, or name another.";
    ActionFailed "action_failed" Platform
        "The agent succeeded and its post-run action failed."
        "Read the end of the job's log. The agent's results are kept.";
    StageFailed "stage_failed" Platform
        "The working directory could not be put together."
        "Check the filesets that the job names.";
    SaveFailed "save_failed" Platform
        "A result could not be saved."
        "Check the object store; the message names the result and the reason.";
    WorkerLost "worker_lost" Platform
        "The process that watched over the agent died, as often as the job's attempts allow; no other end is attempted again."
        "Run the job again, or allow more attempts with max_attempts: it must be right to start the agent twice.";
    Cancelled "cancelled" User
        "Somebody cancelled the job."
        "Nothing to do.";
    Rejected "rejected" Platform
        "The spec that was published cannot be run."
        "The message names the field and the reason; submit again with it mended.";
    DiskFull "disk_full" Platform
        "There was no space left where the agent runs."
        "Free space, or have the agent write less.";
    IdleTimeout "idle_timeout" Time
        "The agent wrote nothing for idle_timeout_seconds and was stopped."
        "Raise idle_timeout_seconds, or have the agent say what it does.";
    QueueTimeout "queue_timeout" Time
        "The job was not started within queue_timeout_seconds."
        "Add slots, or raise queue_timeout_seconds.";
    SecretMissing "secret_missing" Platform
        "A secret that the job names was gone when it started."
        "Create the secret again and run the job again.";
    ContainerVanished "container_vanished" Platform
        "The agent's container disappeared while it ran."
        "Find out who removed it; then run the job again.";
    Unschedulable "unschedulable" Platform
        "The place where agents run cannot give what the job asks for, or what keeps its agent apart."
        "Ask for less in the compute spec, add nodes, or see what errand doctor says of control groups and of the sandbox.";
    Evicted "evicted" Platform
        "The cluster took the agent's place away."
        "Run the job again; raise its requests if that happens often.";
    BudgetExceeded "budget_exceeded" Agent
        "The agent's cost reached max_cost_usd."
        "Raise max_cost_usd.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no failure code.
#[derive(Debug, thiserror::Error)]
#[error("unknown failure code '{0}'")]
pub struct UnknownCode(String);

impl std::str::FromStr for Code {
    type Err = UnknownCode;

    fn from_str(word: &str) -> Result<Self, UnknownCode> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == word)
            .ok_or_else(|| UnknownCode(word.to_owned()))
    }
}

#[cfg(test)]
mod tests;
