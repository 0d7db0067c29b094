//! Executors: where a runner runs. One contract, and one run directory a run, for all of them.

pub mod process;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
pub use errand_runner::cgroup;
use errand_runner::{Launch, Life, Limits, Secrets};
use serde_json::Value;
use streams::id::{Attempt, JobId};
use streams::snapshot::{ObjectRef, Resources};
use tokio::time::Instant;

use crate::store;

/// One attempt of one job: what a run is found again by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunName {
    /// The job.
    pub job: JobId,
    /// Which start of its agent.
    pub attempt: Attempt,
}

impl std::fmt::Display for RunName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.job, self.attempt)
    }
}

/// Everything that a run is made of.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// What the runner is told.
    pub launch: Launch,
    /// The working directory, as a bundle.
    pub workdir: ObjectRef,
    /// The agent's own files, as a bundle.
    pub ethos: Option<ObjectRef>,
    /// Written for the runner's eyes only.
    pub secrets: Secrets,
}

impl RunPlan {
    /// What a job asks its runs to be limited to. How many processes they may have is decided by
    /// the executor.
    pub(crate) fn limits(resources: &Resources) -> Limits {
        let Resources { limits, .. } = resources;
        Limits { cpu_millis: limits.cpu_millis, memory_bytes: limits.memory_bytes, processes: None }
    }
}

/// Why an executor did not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run cannot be, now or ever: the bundle is damaged.
    #[error("{0}")]
    Impossible(String),
    /// It asks for what this machine cannot give.
    #[error("{0}")]
    Unschedulable(String),
    /// The disk is full, now.
    #[error("{0}")]
    Full(String),
    /// Not now.
    #[error("{0}")]
    Unavailable(String),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Where the things of a run are, on this machine.
#[derive(Clone, Debug)]
pub struct Places {
    /// The run's directory, which everything else lies in.
    pub root: PathBuf,
    /// What the agent worked in.
    pub workdir: PathBuf,
    /// Fabric's artifacts, with the agent's output.
    pub artifacts: PathBuf,
    /// The masked log.
    pub log: PathBuf,
}

/// What a runner may need beyond a program's limit and its grace: for the adapter's start, for what
/// does not go away, for a log that is long. One that needs more hangs.
pub(crate) const SLACK: Duration = Duration::from_secs(15 * 60);

/// Where a runner runs.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Looks whether the run is fresh, alive, ended or lost.
    async fn look(&self, run: RunName) -> Result<Life, Error>;

    /// Whether the run's directory is there, filled.
    async fn is_prepared(&self, run: RunName) -> Result<bool, Error>;

    /// Makes and fills the run's directory, unless it is there.
    async fn prepare(&self, run: RunName, plan: &RunPlan) -> Result<(), Error>;

    /// Starts the runner in its prepared directory, unless that was done. Returns when the
    /// runner has passed its start gate. Nothing is started when the claim was `held` so long ago
    /// that another may have it, wherever the time went.
    async fn start(&self, run: RunName, plan: &RunPlan, held: Instant) -> Result<(), Error>;

    /// Keeps a runner that was told to start, and has not, from doing so. False when it has.
    async fn close(&self, run: RunName) -> Result<bool, Error>;

    /// Says when the claim was held.
    async fn renew(&self, run: RunName, held: Instant) -> Result<(), Error>;

    /// Asks the runner to end the run.
    async fn stop(&self, run: RunName, reason: &str) -> Result<(), Error>;

    /// Ends a runner that should have ended the run long ago, and does nothing any more. What it
    /// leaves is swept as after any that is gone.
    async fn end_runner(&self, _run: RunName) -> Result<(), Error> {
        Ok(())
    }

    /// Ends whatever is left of a run whose runner is gone, and returns when nothing is.
    async fn sweep(&self, run: RunName) -> Result<(), Error>;

    /// Where its things are, by the agent's definition.
    fn places(&self, run: RunName, agent: &Value) -> Result<Places, Error>;

    /// Removes the run's directory.
    async fn remove(&self, run: RunName) -> Result<(), Error>;

    /// The runs that have a directory here, or one that was not filled to the end.
    async fn runs(&self) -> Result<Vec<RunName>, Error>;
}
