//! resolved → staged: the working directory becomes one bundle in the object store.

use async_trait::async_trait;
use jiff::Timestamp;
use streams::code::Code;
use streams::fact::{Produced, Resolved, ResultKind, SavedResult, Staged};
use streams::outcome::{Outcome, bounded};
use streams::phase::StepName;
use streams::snapshot::ObjectRef;

use crate::compose::{ComposeError, Recipe, compose};
use crate::control::CANCELLED;
use crate::ends::Ends;
use crate::patience::Patience;
use crate::results::name;
use crate::step::{Context, Step, StepError};
use crate::store::{Store, key};

/// Puts the working directory together.
pub struct Stage {
    /// Where sources are and the bundle goes.
    pub store: Store,
    /// Who may have cancelled the job meanwhile.
    pub ends: Ends,
    /// How long sources may fail to be read before the job fails.
    pub patience: Patience,
}

#[async_trait]
impl Step for Stage {
    const NAME: StepName = StepName::Stage;
    type In = Resolved;
    type Out = Staged;

    async fn run(&self, job: &Context, fact: Resolved) -> Result<Staged, StepError> {
        if let Some(outcome) = fact.outcome {
            return Ok(Staged::passed_on(outcome));
        }
        if self.ends.is_cancelled(job.job).await? {
            return Ok(Staged::passed_on(Outcome::Cancelled { message: CANCELLED.to_owned() }));
        }
        match self.bundles(job).await {
            Err(Failure::Later(error)) => Err(error),
            Err(Failure::Compose(error)) if may_pass(&error) && !self.patience.is_over(job.job) => {
                Err(StepError::retry(error))
            }
            Err(Failure::Compose(error)) => {
                self.patience.forget(job.job);
                let message = format!("the working directory cannot be put together: {error}");
                let (code, message) = (Code::StageFailed, bounded(message));
                Ok(Staged::passed_on(Outcome::NotRun { code, message }))
            }
            Ok(staged) => {
                self.patience.forget(job.job);
                Ok(staged)
            }
        }
    }
}

enum Failure {
    Later(StepError),
    Compose(ComposeError),
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self::Later(error)
    }
}

impl From<ComposeError> for Failure {
    fn from(error: ComposeError) -> Self {
        Self::Compose(error)
    }
}

impl Stage {
    async fn bundles(&self, job: &Context) -> Result<Staged, Failure> {
        let snapshot = job.snapshot(&self.store).await?;
        let mtime = u64::try_from(job.at.as_second()).unwrap_or_default();
        let workdir = Recipe {
            top: name::INPUT_WORKDIR.to_owned(),
            base: snapshot.base,
            mounts: snapshot.mounts,
            mtime,
        };
        let object = self.bundle(job, &workdir).await?;
        let ethos = match snapshot.ethos {
            Some(source) => {
                let top = "ethos".to_owned();
                let recipe = Recipe { top, base: Some(source), mounts: Vec::new(), mtime };
                Some(self.bundle(job, &recipe).await?)
            }
            None => None,
        };
        let input_workdir = SavedResult {
            name: name::INPUT_WORKDIR.to_owned(),
            kind: ResultKind::Directory,
            object,
            complete: true,
            skipped: Vec::new(),
            skipped_more: 0,
            changed_while_saved: Vec::new(),
            secret_detected: Vec::new(),
            output_changes: None,
            saved_at: Timestamp::now(),
        };
        Ok(Staged { input_workdir: Some(input_workdir), ethos, outcome: None })
    }

    async fn bundle(&self, job: &Context, recipe: &Recipe) -> Result<ObjectRef, ComposeError> {
        let key = key::input(&job.workspace, job.job, &recipe.top);
        compose(&self.store, &key, recipe).await
    }
}

/// A source that is gone stays gone; a store that does not answer may come back.
const fn may_pass(error: &ComposeError) -> bool {
    !matches!(error, ComposeError::Broken(_))
}
