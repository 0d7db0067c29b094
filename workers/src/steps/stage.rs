//! resolved → staged: the working directory becomes one bundle in the object store, within its
//! own budget of time, unless somebody cancels the job or its time to be started is over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use streams::code::Code;
use streams::fact::{Produced, Resolved, ResultKind, SavedResult, Staged};
use streams::outcome::{Outcome, bounded};
use streams::phase::StepName;
use streams::snapshot::{ObjectRef, QueueLimit, Snapshot};
use tokio::time::Instant;

use crate::compose::{ComposeError, Recipe, compose};
use crate::control::{self, CANCELLED};
use crate::ends::Ends;
use crate::patience::Patience;
use crate::results::name;
use crate::step::{Context, Step, StepError};
use crate::store::{Store, key};

/// How often a cancel is looked for.
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(500);

/// Puts the working directory together.
pub struct Stage {
    /// Where sources are and the bundle goes.
    pub store: Store,
    /// Who may have cancelled the job meanwhile.
    pub ends: Ends,
    /// How long sources may fail to be read before the job fails.
    pub patience: Patience,
    /// How long a working directory may take to be put together.
    pub budget: Patience,
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
        let snapshot = job.snapshot(&self.store).await?;
        let packed = AtomicU64::new(0);
        // What is dropped here has begun nothing that it does not take back.
        let staged = tokio::select! {
            biased;
            ended = self.ended(job, &snapshot, &packed) => Ok(Staged::passed_on(ended?)),
            staged = self.bundles(job, &snapshot, &packed) => staged,
        };
        match staged {
            Err(error) if may_pass(&error) && !self.patience.is_over(job.job) => {
                return Err(StepError::retry(error));
            }
            staged => {
                self.patience.forget(job.job);
                self.budget.forget(job.job);
                Ok(staged.unwrap_or_else(|error| Staged::passed_on(failed(error.to_string()))))
            }
        }
    }
}

impl Stage {
    /// Waits until something ends the job before it is staged; says how.
    async fn ended(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        packed: &AtomicU64,
    ) -> Result<Outcome, StepError> {
        let until = self.budget.until(job.job);
        loop {
            // One that cannot be looked for is seen by whoever comes next.
            if self.ends.is_cancelled(job.job).await.unwrap_or(false) {
                return Ok(Outcome::Cancelled { message: CANCELLED.to_owned() });
            }
            if let Some(limit) = snapshot.queue_limit.filter(QueueLimit::is_over) {
                return Ok(control::not_in_time(&self.ends, job.job, &limit).await?);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(failed(format!(
                    "it took longer than {} s (worker.staging_seconds); {} bytes were packed by \
                     then",
                    self.budget.budget().as_secs(),
                    packed.load(Ordering::Relaxed)
                )));
            }
            tokio::time::sleep_until(until.min(now + LOOK_FOR_CANCEL)).await;
        }
    }

    async fn bundles(
        &self,
        job: &Context,
        snapshot: &Snapshot,
        packed: &AtomicU64,
    ) -> Result<Staged, ComposeError> {
        let mtime = u64::try_from(job.at.as_second()).unwrap_or_default();
        let workdir = Recipe {
            top: name::INPUT_WORKDIR.to_owned(),
            base: snapshot.base.clone(),
            mounts: snapshot.mounts.clone(),
            mtime,
        };
        let object = self.bundle(job, &workdir, packed).await?;
        let ethos = match snapshot.ethos.clone() {
            Some(source) => {
                let top = "ethos".to_owned();
                let recipe = Recipe { top, base: Some(source), mounts: Vec::new(), mtime };
                Some(self.bundle(job, &recipe, packed).await?)
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
            unsearched: false,
            output_changes: None,
            saved_at: Timestamp::now(),
        };
        Ok(Staged { input_workdir: Some(input_workdir), ethos, outcome: None })
    }

    async fn bundle(
        &self,
        job: &Context,
        recipe: &Recipe,
        packed: &AtomicU64,
    ) -> Result<ObjectRef, ComposeError> {
        let key = key::input(&job.workspace, job.job, &recipe.top);
        compose(&self.store, &key, recipe, packed).await
    }
}

fn failed(reason: String) -> Outcome {
    let message = bounded(format!("the working directory cannot be put together: {reason}"));
    Outcome::NotRun { code: Code::StageFailed, message }
}

/// A source that is gone stays gone; a store that does not answer may come back.
const fn may_pass(error: &ComposeError) -> bool {
    !matches!(error, ComposeError::Broken(_))
}
