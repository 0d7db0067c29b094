//! Saving what a run left behind, also when it failed. The run result comes first: it is small
//! and worth most when the store or the disk is in trouble.

use std::path::Path;

use errand_runner::Outcome as RunOutcome;
use jiff::{SignedDuration, Timestamp};
use streams::code::Code;
use streams::fact::SavedResult;
use streams::outcome::Outcome;
use streams::phase::StepName;

use super::Invoke;
use crate::executor::RunName;
use crate::fault::{self, Point};
use crate::results::{Results, SaveError, name};
use crate::step::{Context, StepError};

/// Results that the store does not take within this time after the agent's end are given up.
/// It has nothing to do with the agent's own limit.
const BUDGET: SignedDuration = SignedDuration::from_mins(15);

/// What was saved, and how the job ends in view of that.
pub(super) struct Saved {
    pub(super) outcome: Outcome,
    pub(super) results: Vec<SavedResult>,
}

impl Invoke {
    /// Saves everything, to keys of this attempt: doing it again writes the same.
    pub(super) async fn save(
        &self,
        job: &Context,
        run: RunName,
        told: &RunOutcome,
        outcome: Outcome,
    ) -> Result<Saved, StepError> {
        let results = Results {
            store: self.store.clone(),
            workspace: job.workspace.clone(),
            job: job.job,
            attempt: run.attempt,
            interrupted: told.interrupted,
        };
        let places = self.executor.places(run).await?;
        let mut saving = Saving { saved: Vec::new(), failed: Vec::new(), ended_at: told.ended_at };
        if let Some(value) = &told.run_result {
            saving.take(results.record(name::FABRIC_RUN_RESULT, value).await)?;
        }
        if let Some(value) = &told.error {
            saving.take(results.record(name::FABRIC_ERROR, value).await)?;
        }
        fault::point(StepName::Invoke, Point::Saving).await;
        for (name, root) in
            [(name::OUTPUT_WORKDIR, places.workdir), (name::OUTPUT_ARTIFACTS, places.artifacts)]
        {
            ensure(&root);
            saving.take(results.directory(name, root).await)?;
        }
        fault::point(StepName::Invoke, Point::Saved).await;
        Ok(saving.finish(outcome))
    }
}

struct Saving {
    saved: Vec<SavedResult>,
    failed: Vec<SaveError>,
    ended_at: Timestamp,
}

impl Saving {
    /// Keeps a result, or remembers for good that it could not be kept.
    fn take(&mut self, result: Result<SavedResult, SaveError>) -> Result<(), StepError> {
        let within_budget = Timestamp::now().duration_since(self.ended_at) < BUDGET;
        match result {
            Ok(saved) => self.saved.push(saved),
            Err(error @ SaveError::Store { .. }) if within_budget => {
                return Err(StepError::retry(error));
            }
            Err(error) => {
                tracing::error!(%error, "a result is given up");
                self.failed.push(error);
            }
        }
        Ok(())
    }

    /// A success whose results are not all there is none; a failure keeps its own reason.
    fn finish(self, outcome: Outcome) -> Saved {
        let outcome = match (outcome, self.failed.first()) {
            (Outcome::Succeeded, Some(error)) => {
                Outcome::Failed { code: Code::SaveFailed, message: error.to_string() }
            }
            (outcome, _) => outcome,
        };
        Saved { outcome, results: self.saved }
    }
}

/// An agent may have removed its own directory; an empty one is what it left then.
fn ensure(root: &Path) {
    if !root.is_dir() {
        let _ = std::fs::create_dir_all(root);
    }
}
