//! A step: consumes one fact, returns the next. It cannot publish and cannot acknowledge.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use streams::broker::{self, Broker};
use streams::envelope::Envelope;
use streams::fact::Fact;
use streams::id::JobId;
use streams::phase::StepName;
use streams::snapshot::Snapshot;

use crate::store::{self, Store};
use crate::trace::JobTrace;

/// The code that takes a job from one phase to the next.
///
/// It may be run any number of times for the same fact, also at once in two places, and must
/// come to the same: everything that it does to the world has a name made of the job's id.
#[async_trait]
pub trait Step: Send + Sync + 'static {
    /// Which one it is.
    const NAME: StepName;
    /// The fact that it consumes.
    type In: Fact;
    /// The fact that it produces.
    type Out: Fact;

    /// Does the work.
    async fn run(&self, job: &Context, fact: Self::In) -> Result<Self::Out, StepError>;

    /// Jobs that a worker of this place has begun with which is gone, and that nobody here works
    /// on: what was started for them is found at no other place.
    async fn begun_here(&self) -> Result<Vec<JobId>, StepError> {
        Ok(Vec::new())
    }

    /// Called for such a job that is taken up again, before anything new is begun with.
    async fn takes_up(&self, _workspace: &str, _job: JobId) -> Result<(), StepError> {
        Ok(())
    }

    /// Called once the produced fact is stored; tidies up. It is called until it went well, or
    /// until the fact is gone.
    async fn settled(&self, _job: &Context) -> Result<(), StepError> {
        Ok(())
    }
}

/// Checks at compile time that a step fits into the chain.
pub(crate) const fn fits<S: Step>() {
    assert!(
        S::NAME.consumes() as usize == S::In::PHASE as usize,
        "a step must consume the fact of the phase that the chain gives it"
    );
    assert!(
        S::In::PHASE as usize + 1 == S::Out::PHASE as usize,
        "a step must produce the next phase's fact"
    );
}

/// Why a step returns no fact now. A job that *fails* is no such thing: its failure is a fact.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// Something that the step needs is not there at the moment.
    #[error("{reason}")]
    Retry {
        /// When to try again.
        after: Duration,
        /// What is missing.
        reason: String,
    },
    /// Somebody else has the job in hand.
    #[error("another worker holds the claim")]
    Busy {
        /// When to look again.
        after: Duration,
    },
    /// Somebody keeps the job from being started.
    #[error("the job is held back")]
    Held,
    /// This worker has not what the job needs; another may have it.
    #[error("{reason}")]
    NotHere {
        /// What that is.
        reason: String,
    },
    /// The job is deleted: there is nothing to do, and no fact to produce.
    #[error("the job was deleted")]
    Deleted,
}

impl StepError {
    /// Try again soon.
    pub fn retry(reason: impl std::fmt::Display) -> Self {
        Self::Retry { after: Duration::from_secs(2), reason: reason.to_string() }
    }
}

impl From<broker::Error> for StepError {
    fn from(error: broker::Error) -> Self {
        Self::retry(error)
    }
}

impl From<store::Error> for StepError {
    fn from(error: store::Error) -> Self {
        Self::retry(error)
    }
}

/// The job whose fact is at hand, and a way to read its earlier facts.
#[derive(Clone)]
pub struct Context {
    /// The job.
    pub job: JobId,
    /// Its workspace.
    pub workspace: String,
    /// When the fact at hand came to be.
    pub at: Timestamp,
    /// W3C trace context.
    pub traceparent: Option<String>,
    facts: Arc<dyn Broker>,
}

impl Context {
    pub(crate) fn new<F>(envelope: &Envelope<F>, facts: Arc<dyn Broker>) -> Self {
        Self {
            job: envelope.job,
            workspace: envelope.workspace.clone(),
            at: envelope.at,
            traceparent: envelope.traceparent.clone(),
            facts,
        }
    }

    /// Its trace.
    pub(crate) fn trace(&self) -> JobTrace {
        JobTrace::of(self.job, self.traceparent.as_deref())
    }

    /// An earlier fact of this job.
    pub async fn fact<F: Fact>(&self) -> Result<F, StepError> {
        Ok(self.envelope().await?.fact)
    }

    /// The same with what its message says about it.
    pub(crate) async fn envelope<F: Fact>(&self) -> Result<Envelope<F>, StepError> {
        let stored = Envelope::stored(&*self.facts, &self.workspace, self.job).await?;
        stored.ok_or_else(|| StepError::retry(format!("no {} fact stands", F::PHASE)))
    }

    /// What the job runs, from its `resolved` fact.
    pub async fn snapshot(&self, store: &Store) -> Result<Snapshot, StepError> {
        let resolved: streams::fact::Resolved = self.fact().await?;
        let part = resolved.snapshot.ok_or_else(|| StepError::retry("job has no snapshot"))?;
        Ok(store.open(&part).await?)
    }
}
