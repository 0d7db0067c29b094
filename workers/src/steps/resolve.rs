//! submitted → resolved: admits the job and pins everything that it needs.

use std::sync::Arc;

use async_trait::async_trait;
use streams::code::Code;
use streams::fact::{Produced, Resolved, Submitted};
use streams::outcome::{Outcome, bounded};
use streams::phase::StepName;

use crate::ports::{Admission, Catalog};
use crate::step::{Context, Step, StepError};
use crate::store::{Store, key};

/// Makes a job out of a submission.
pub struct Resolve {
    /// Admits it.
    pub catalog: Arc<dyn Catalog>,
    /// Keeps a snapshot that is too large for a message.
    pub store: Store,
}

#[async_trait]
impl Step for Resolve {
    const NAME: StepName = StepName::Resolve;
    type In = Submitted;
    type Out = Resolved;

    async fn run(&self, job: &Context, fact: Submitted) -> Result<Resolved, StepError> {
        let admitted = self.catalog.admit(job.job, &job.workspace, &fact).await;
        match admitted.map_err(StepError::retry)? {
            Admission::Admitted(snapshot) => {
                let value = serde_json::to_value(&*snapshot).map_err(StepError::retry)?;
                let key = key::snapshot(&job.workspace, job.job);
                let snapshot = self.store.part(&key, value).await?;
                Ok(Resolved { snapshot: Some(snapshot), outcome: None })
            }
            Admission::Refused(message) => {
                let message = bounded(message);
                Ok(Resolved::passed_on(Outcome::NotRun { code: Code::Rejected, message }))
            }
            Admission::Deleted => Err(StepError::Deleted),
        }
    }
}
