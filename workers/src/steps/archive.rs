//! acted → archived: keeps the log and the manifest, after which the facts may go.

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::envelope::Envelope;
use streams::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged, Submitted};
use streams::phase::StepName;
use streams::snapshot::ObjectRef;

use crate::logs::LogReader;
use crate::step::{Context, Step, StepError};
use crate::store::{Store, Sums, key};

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
        // Somebody may have come so far before, and have told of it by now: what is listed does not
        // change, also when a worker that woke up late has passed on more of the log since.
        if let Some(Kept { manifest, logs }) = self.kept(job, &fact).await? {
            return Ok(Archived { outcome, manifest, logs });
        }
        let logs = self.logs.archive(&self.store, &job.workspace, job.job).await?;
        let manifest = self.manifest(job, &fact, logs.as_ref()).await?;
        Ok(Archived { outcome, manifest, logs })
    }
}

/// What stands in the store of a job that is archived.
struct Kept {
    manifest: ObjectRef,
    logs: Option<ObjectRef>,
}

impl Archive {
    /// What somebody has archived before us, if it is of this very fact.
    async fn kept(&self, job: &Context, acted: &Acted) -> Result<Option<Kept>, StepError> {
        let key = key::manifest(&job.workspace, job.job);
        let Some(bytes) = self.store.read_unknown(&key).await? else { return Ok(None) };
        let Ok(manifest) = serde_json::from_slice::<Value>(&bytes) else { return Ok(None) };
        if manifest["facts"][Acted::PHASE.token()] != value(acted)? {
            return Ok(None);
        }
        let Ok(logs) = serde_json::from_value(manifest["logs"].clone()) else { return Ok(None) };
        Ok(Some(Kept { manifest: Sums::of(&bytes).object(&key), logs }))
    }

    /// A pure function of the first five facts and the packed log, so that writing it twice writes
    /// the same.
    async fn manifest(
        &self,
        job: &Context,
        acted: &Acted,
        logs: Option<&ObjectRef>,
    ) -> Result<ObjectRef, StepError> {
        let mut facts = Facts::default();
        facts.put(&job.envelope::<Submitted>().await?)?;
        facts.put(&job.envelope::<Resolved>().await?)?;
        facts.put(&job.envelope::<Staged>().await?)?;
        facts.put(&job.envelope::<Invoked>().await?)?;
        facts.put_fact(acted, job.at)?;
        let manifest = json!({
            "v": 1,
            "job": job.job,
            "workspace": job.workspace,
            "facts": facts.facts,
            "at": facts.at,
            "logs": logs,
        });
        let bytes = serde_json::to_vec_pretty(&manifest).map_err(StepError::retry)?;
        Ok(self.store.put(&key::manifest(&job.workspace, job.job), bytes.into()).await?)
    }
}

/// The facts by their phase, and when each came to be.
#[derive(Default)]
struct Facts {
    facts: Map<String, Value>,
    at: Map<String, Value>,
}

impl Facts {
    fn put<F: Fact>(&mut self, envelope: &Envelope<F>) -> Result<(), StepError> {
        self.put_fact(&envelope.fact, envelope.at)
    }

    fn put_fact<F: Fact>(&mut self, fact: &F, at: Timestamp) -> Result<(), StepError> {
        let phase = F::PHASE.token().to_owned();
        self.facts.insert(phase.clone(), value(fact)?);
        self.at.insert(phase, json!(at));
        Ok(())
    }
}

fn value<F: Fact>(fact: &F) -> Result<Value, StepError> {
    serde_json::to_value(fact).map_err(StepError::retry)
}
