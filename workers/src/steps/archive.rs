//! acted → archived: keeps the log and the manifest, after which the facts may go.

use async_trait::async_trait;
use serde_json::{Value, json};
use streams::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged, Submitted};
use streams::phase::StepName;
use streams::snapshot::ObjectRef;

use crate::logs::LogReader;
use crate::step::{Context, Step, StepError};
use crate::store::{Store, key};

/// Finishes a job.
pub struct Archive {
    /// Where log and manifest go.
    pub store: Store,
    /// Where the log is until then.
    pub logs: LogReader,
}

#[async_trait]
impl Step for Archive {
    const NAME: StepName = StepName::Archive;
    type In = Acted;
    type Out = Archived;

    async fn run(&self, job: &Context, fact: Acted) -> Result<Archived, StepError> {
        let outcome = fact.outcome.clone();
        let logs = self.logs.archive(&self.store, &job.workspace, job.job).await?;
        let manifest = self.manifest(job, &fact, logs.as_ref()).await?;
        Ok(Archived { outcome, manifest, logs })
    }
}

impl Archive {
    /// A pure function of the first five facts and the packed log, so that writing it twice writes
    /// the same.
    async fn manifest(
        &self,
        job: &Context,
        acted: &Acted,
        logs: Option<&ObjectRef>,
    ) -> Result<ObjectRef, StepError> {
        let facts = json!({
            Submitted::PHASE.token(): value(&job.fact::<Submitted>().await?)?,
            Resolved::PHASE.token(): value(&job.fact::<Resolved>().await?)?,
            Staged::PHASE.token(): value(&job.fact::<Staged>().await?)?,
            Invoked::PHASE.token(): value(&job.fact::<Invoked>().await?)?,
            Acted::PHASE.token(): value(acted)?,
        });
        let manifest = json!({
            "v": 1,
            "job": job.job,
            "workspace": job.workspace,
            "facts": facts,
            "logs": logs,
        });
        let bytes = serde_json::to_vec_pretty(&manifest).map_err(StepError::retry)?;
        Ok(self.store.put(&key::manifest(&job.workspace, job.job), bytes.into()).await?)
    }
}

fn value<F: Fact>(fact: &F) -> Result<Value, StepError> {
    serde_json::to_value(fact).map_err(StepError::retry)
}
