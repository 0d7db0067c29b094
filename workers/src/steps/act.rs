//! invoked → acted: what follows a success, and only a success.

use async_trait::async_trait;
use streams::fact::{Acted, Invoked, Produced};
use streams::phase::StepName;

use crate::actions;
use crate::fault::{self, Point};
use crate::step::{Context, Step, StepError};
use crate::store::Store;

/// Runs the job's post-run action.
pub struct Act {
    /// Where the snapshot may be.
    pub store: Store,
}

#[async_trait]
impl Step for Act {
    const NAME: StepName = StepName::Act;
    type In = Invoked;
    type Out = Acted;

    async fn run(&self, job: &Context, fact: Invoked) -> Result<Acted, StepError> {
        if !fact.outcome.succeeded() {
            return Ok(Acted::passed_on(fact.outcome));
        }
        let action = job.snapshot(&self.store).await?.spec.post_run_action;
        fault::point(Self::NAME, Point::Acting).await;
        tracing::info!(kind = action.kind, "post-run action");
        Ok(Acted { outcome: actions::run(&action), results: Vec::new() })
    }
}
