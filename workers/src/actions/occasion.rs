//! What an action is told: the job that has just succeeded.

use std::fmt::Display;

use bytes::Bytes;
use serde_json::{Value, json};
use streams::fact::{Invoked, Run, SavedResult, Staged};
use streams::id::Attempt;
use streams::phase::Phase;
use streams::snapshot::Snapshot;

use crate::patience::Patience;
use crate::results::name;
use crate::step::{Context, StepError};
use crate::store::Store;

/// Bytes of a run result that ride in an announcement; a longer one is left out.
const RUN_RESULT_BYTES: u64 = 32 * 1024;

/// A job whose agent succeeded.
pub(crate) struct Occasion<'a> {
    pub(crate) job: &'a Context,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) invoked: &'a Invoked,
    pub(crate) store: &'a Store,
    /// How long its action may fail for want of something that comes back.
    pub(crate) patience: &'a Patience,
}

impl Occasion<'_> {
    /// What is not there now is tried again, unless that has gone on for too long: an answer then
    /// says why nothing becomes of it.
    pub(crate) fn gives_up(&self, error: impl Display) -> Result<String, StepError> {
        if self.patience.is_over(self.job.job) {
            Ok(format!("given up: {error}"))
        } else {
            Err(StepError::retry(error))
        }
    }

    /// The same for every delivery, so that whoever hears of the job twice can tell.
    pub(crate) fn message_id(&self) -> String {
        self.job.job.message_id(Phase::Acted)
    }

    /// `workspace/name` of the agent.
    pub(crate) fn agent(&self) -> String {
        let agent = &self.snapshot.spec.agent;
        format!("{}/{}", agent.workspace, agent.name)
    }

    /// The attempt that succeeded.
    pub(crate) fn attempt(&self) -> Attempt {
        self.invoked.run.as_ref().map_or(Attempt::FIRST, |run| run.attempt)
    }

    /// A saved result of the agent.
    pub(crate) fn result(&self, name: &str) -> Result<&SavedResult, String> {
        let found = self.invoked.results.iter().find(|result| result.name == name);
        found.ok_or_else(|| format!("the job has no result '{name}'"))
    }

    /// What Fabric returned, unless that is more than so many bytes; and how many it is.
    pub(crate) async fn run_result(&self, limit: u64) -> Result<(Value, u64), StepError> {
        let Ok(saved) = self.result(name::FABRIC_RUN_RESULT) else { return Ok((Value::Null, 0)) };
        let size = saved.object.size;
        if size > limit {
            return Ok((Value::Null, size));
        }
        let missing = || StepError::retry(format!("object {} is gone", saved.object.key));
        let bytes = self.store.read(&saved.object).await?.ok_or_else(missing)?;
        let value = serde_json::from_slice(&bytes).map_err(StepError::retry)?;
        Ok((value, size))
    }

    /// What is told to the world: the same bytes for every delivery.
    pub(crate) async fn announcement(&self) -> Result<Bytes, StepError> {
        let staged: Staged = self.job.fact().await?;
        let results = staged.input_workdir.iter().chain(&self.invoked.results).map(|result| {
            json!({
                "name": result.name,
                "kind": result.kind,
                "size": result.object.size,
                "sha256": result.object.sha256,
                "complete": result.complete,
            })
        });
        let (run_result, bytes) = self.run_result(RUN_RESULT_BYTES).await?;
        let announcement = json!({
            "type": "errand.job.succeeded",
            "timestamp": self.invoked.run.as_ref().map_or(self.job.at, ended_at),
            "data": {
                "job": self.snapshot.name,
                "job_id": self.job.job.http(),
                "workspace": self.job.workspace,
                "agent": self.agent(),
                "fabric_run_result": run_result,
                "fabric_run_result_bytes": bytes,
                "results": results.collect::<Vec<_>>(),
            },
        });
        Ok(announcement.to_string().into())
    }
}

fn ended_at(run: &Run) -> jiff::Timestamp {
    run.ended_at
}
