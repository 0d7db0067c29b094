//! What an agent needs to have installed where it runs. A worker that has it not leaves the job to
//! one that has; whether what is there works is found out by the runner.

use errand_runner::adapters::{self, Needed};
use streams::snapshot::Snapshot;

use super::Invoke;
use crate::step::{Context, StepError};

impl Invoke {
    /// What the agent needs and this worker has not. Looked for each time: it may be installed
    /// while the worker runs.
    pub(super) fn lacks(&self, snapshot: &Snapshot) -> Option<Needed> {
        let needed = adapters::needed(&snapshot.spec.agent.config)?;
        adapters::lacks(&self.settings.adapter_dirs, &needed).then_some(needed)
    }

    /// Leaves a job to others, and says what it waits for.
    pub(super) async fn not_here(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        needed: &Needed,
    ) -> StepError {
        self.status.waits(job, &snapshot.name, &needed.to_string()).await;
        StepError::NotHere { reason: format!("no {needed} is installed here") }
    }
}
