//! invoked → acted: what follows a success, and only a success.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use streams::broker::Broker;
use streams::code::Code;
use streams::fact::{Acted, Invoked, Produced};
use streams::id::JobId;
use streams::outcome::{Outcome, bounded};
use streams::phase::StepName;

use crate::actions::{self, Done, Installed, Message, Occasion, Programs, Registry, Way};
use crate::claims;
use crate::fault::{self, Point};
use crate::patience::Patience;
use crate::ports::{Filesets, Secrets, SecretsError};
use crate::step::{Context, Step, StepError};
use crate::store::Store;

/// Runs the job's post-run action.
pub struct Act {
    /// Which there are.
    pub actions: Arc<Registry>,
    /// Where the snapshot may be, and the agent's results are.
    pub store: Store,
    /// What messages are published with.
    pub broker: Arc<dyn Broker>,
    /// Opened when an action is run.
    pub secrets: Arc<dyn Secrets>,
    /// Where files are exported to.
    pub filesets: Arc<dyn Filesets>,
    /// Runs those that are programs.
    pub programs: Programs,
    /// How long an action may fail for want of something that comes back.
    pub patience: Patience,
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
        let snapshot = job.snapshot(&self.store).await?;
        let action = &snapshot.spec.post_run_action;
        fault::point(Self::NAME, Point::Acting).await;
        tracing::info!(kind = action.kind, "post-run action");
        let installed = match self.actions.check(&action.kind, &action.config, &job.workspace) {
            Ok(installed) => installed,
            // Refused at submission and before the agent; here only when it was removed since.
            Err(refused) => {
                let (code, message) = (Code::ActionMissing, bounded(refused.to_string()));
                return Ok(Acted::passed_on(Outcome::Failed { code, message }));
            }
        };
        let (store, snapshot) = (&self.store, &snapshot);
        let patience = &self.patience;
        let occasion = Occasion { job, snapshot, invoked: &fact, store, patience };
        let done = self.perform(installed, &occasion, &action.config).await?;
        patience.forget(job.job);
        let outcome = match done.failure {
            None => Outcome::Succeeded,
            Some(reason) => {
                let message = bounded(format!("post-run action '{}': {reason}", action.kind));
                tracing::warn!(reason = message, "post-run action failed");
                Outcome::Failed { code: Code::ActionFailed, message }
            }
        };
        Ok(Acted { outcome, results: done.results })
    }

    async fn begun_here(&self) -> Result<Vec<JobId>, StepError> {
        claims::begun_here(&self.programs.claims, &*self.programs.executor).await
    }

    async fn settled(&self, job: &Context) -> Result<(), StepError> {
        Ok(claims::finish(&self.programs.claims, job.job).await?)
    }
}

impl Act {
    /// All but programs may be repeated: each time they do the same under the same name.
    async fn perform(
        &self,
        installed: &Installed,
        occasion: &Occasion<'_>,
        config: &Map<String, Value>,
    ) -> Result<Done, StepError> {
        let done = match &installed.way {
            Way::Noop => return Ok(Done::default()),
            // One that runs must be waited for, whatever fails meanwhile.
            Way::Program(manifest) => return self.programs.run(occasion, manifest, config).await,
            Way::Webhook => self.webhook(installed, occasion, config).await,
            Way::Publish => actions::publish(&*self.broker, occasion, config).await,
            Way::ExportFiles => actions::export(&*self.filesets, occasion, config).await,
        };
        match done {
            Err(StepError::Retry { reason, .. }) => occasion.gives_up(reason).map(Done::failed),
            done => done,
        }
    }

    async fn webhook(
        &self,
        installed: &Installed,
        occasion: &Occasion<'_>,
        config: &Map<String, Value>,
    ) -> Result<Done, StepError> {
        let workspace = &occasion.job.workspace;
        let secrets = match self.secrets.open(workspace, &installed.secrets(config)).await {
            Ok(secrets) => secrets,
            Err(error @ SecretsError::Missing { .. }) => {
                return Ok(Done::failed(error.to_string()));
            }
            Err(SecretsError::Unavailable(error)) => return Err(StepError::retry(error)),
        };
        let secret = secrets.get(actions::SIGNING_KEY).map(String::as_str);
        let message = Message { id: occasion.message_id(), body: occasion.announcement().await? };
        match self.actions.webhooks().send(config, secret, &message).await {
            Ok(()) => Ok(Done::default()),
            Err(reason) => Ok(Done::failed(reason)),
        }
    }
}
