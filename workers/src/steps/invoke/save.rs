//! Saving what a run left behind, also when it failed, within a budget of its own. The run result
//! comes first: it is small and worth most when the store or the disk is in trouble.

use std::time::Duration;

use errand_runner::{Failure, Outcome as RunOutcome, SecretsFound};
use streams::code::Code;
use streams::fact::SavedResult;
use streams::outcome::{Outcome, bounded};
use streams::phase::StepName;
use streams::snapshot::Snapshot;
use tokio::time::Instant;

use super::Invoke;
use crate::executor::RunName;
use crate::fault::{self, Point};
use crate::results::{Results, SaveError, name, own};
use crate::step::{Context, StepError};

/// A store that failed may be back only when the time is over: what is quick is saved even then,
/// also what an earlier delivery has saved already.
const LAST_CHANCE: Duration = Duration::from_secs(10);

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
        snapshot: &Snapshot,
        run: RunName,
        told: &RunOutcome,
        outcome: Outcome,
    ) -> Result<Saved, StepError> {
        let secrets = secrets_found(snapshot, told);
        let results = Results {
            store: self.store.clone(),
            workspace: job.workspace.clone(),
            job: job.job,
            attempt: run.attempt,
            interrupted: told.interrupted,
            hides_names: secrets.names,
        };
        let places = self.executor.places(run, &snapshot.spec.agent.config)?;
        let mut saving = Saving { saved: Vec::new(), failed: Vec::new() };
        let records =
            [(name::FABRIC_RUN_RESULT, &told.run_result), (name::FABRIC_ERROR, &told.error)];
        for (name, value) in records {
            if let Some(value) = value {
                let saved = self.in_time(job, name, results.record(name, value)).await;
                self.take(&mut saving, job, saved)?;
            }
        }
        fault::point(StepName::Invoke, Point::Saving).await;
        for (name, root, given, paths) in [
            (name::OUTPUT_WORKDIR, places.workdir, Some(places.root.clone()), &secrets.workdir),
            (name::OUTPUT_ARTIFACTS, places.artifacts, None, &secrets.artifacts),
        ] {
            let saved = match own(&places.root, &root) {
                Ok(()) => self.in_time(job, name, results.compared(name, root, given)).await,
                Err(source) => Err(SaveError::Read { name: name.to_owned(), source }),
            };
            let marked = saved.map(|saved| SavedResult {
                secret_detected: paths.clone(),
                unsearched: secrets.unsearched,
                ..saved
            });
            self.take(&mut saving, job, marked)?;
        }
        fault::point(StepName::Invoke, Point::Saved).await;
        self.patience.forget(job.job);
        self.saving.forget(job.job);
        Ok(saving.finish(outcome))
    }

    /// When the time to save the results is over. It has nothing to do with the agent's own limit.
    fn save_until(&self, job: &Context) -> Instant {
        let (now, until) = (Instant::now(), self.saving.until(job.job));
        if until > now { until } else { now + LAST_CHANCE }
    }

    /// Saves a result, or gives it up when the time for all of them is over. One that the store
    /// refuses does not take the last chance of the others.
    async fn in_time(
        &self,
        job: &Context,
        name: &str,
        saving: impl Future<Output = Result<SavedResult, SaveError>>,
    ) -> Result<SavedResult, SaveError> {
        tokio::time::timeout_at(self.save_until(job), saving).await.unwrap_or_else(|_| {
            let seconds = self.saving.budget().as_secs();
            Err(SaveError::Late { name: name.to_owned(), seconds })
        })
    }

    /// Keeps a result, or remembers for good that it could not be kept.
    fn take(
        &self,
        saving: &mut Saving,
        job: &Context,
        result: Result<SavedResult, SaveError>,
    ) -> Result<(), StepError> {
        match result {
            Ok(saved) => saving.saved.push(saved),
            Err(error @ SaveError::Store { .. })
                if !self.patience.is_over(job.job) && !self.saving.is_over(job.job) =>
            {
                return Err(StepError::retry(error));
            }
            Err(error) => {
                tracing::error!(%error, "a result is given up");
                saving.failed.push(error);
            }
        }
        Ok(())
    }
}

/// Nobody has looked into what a run left that was lost.
fn secrets_found(snapshot: &Snapshot, told: &RunOutcome) -> SecretsFound {
    let is_lost = told.failure == Some(Failure::WorkerLost) && told.log_lines == 0;
    match is_lost && !snapshot.spec.secrets.is_empty() {
        true => SecretsFound::unknown(),
        false => told.secrets_found.clone(),
    }
}

struct Saving {
    saved: Vec<SavedResult>,
    failed: Vec<SaveError>,
}

impl Saving {
    /// A success whose results are not all there is none; a failure keeps its own reason
    /// and tells of that, too.
    fn finish(self, outcome: Outcome) -> Saved {
        let outcome = match (outcome, self.failed.first()) {
            (Outcome::Succeeded, Some(error)) => {
                Outcome::Failed { code: Code::SaveFailed, message: error.to_string() }
            }
            (outcome, Some(error)) => {
                outcome.map_message(|reason| bounded(format!("{reason}; {error}")))
            }
            (outcome, None) => outcome,
        };
        Saved { outcome, results: self.saved }
    }
}
