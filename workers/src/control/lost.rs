//! Cancelled jobs whose agent was started by a worker that is gone for good. Nobody else takes
//! such a claim over where no worker is left, so the control plane watches it on its own clock, as
//! a worker elsewhere would, and ends the job.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use streams::broker::{Broker, Error};
use streams::claim::{self, Claim};
use streams::envelope::Envelope;
use streams::fact::{Invoked, Produced, Staged};
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::topology::Bucket;

use super::{CANCELLED, encode, settled, stands};
use crate::ends::Ends;
use crate::holds::Holds;
use crate::runtime::put;
use crate::unchanged::Unchanged;

/// The claims that are watched from here.
pub struct LostClaims {
    broker: Arc<dyn Broker>,
    seen: Unchanged,
}

impl LostClaims {
    /// Watches claims, which are lost when they did not change for so long.
    pub fn new(broker: Arc<dyn Broker>, lost_after: Duration) -> Self {
        Self { broker, seen: Unchanged::new(lost_after) }
    }

    /// Ends a cancelled job whose claim is lost. Does nothing otherwise; call it again, and again.
    pub async fn settle_cancel(&self, workspace: &str, job: JobId) -> Result<(), Error> {
        let broker = &*self.broker;
        let Some(staged) = Envelope::<Staged>::stored(broker, workspace, job).await? else {
            return Ok(());
        };
        if stands(broker, Phase::Invoked, workspace, job).await?
            || !Ends::new(Arc::clone(&self.broker)).is_cancelled(job).await?
        {
            return Ok(());
        }
        let key = claim::agent_key(job);
        let Some(entry) = broker.get(Bucket::Claims, &key).await? else { return Ok(()) };
        let Ok(claim) = serde_json::from_slice::<Claim>(&entry.value) else { return Ok(()) };
        if !claim.settled {
            if !self.seen.is_lost(job, entry.revision) {
                return Ok(());
            }
            // One write upon what was watched: a worker that is back by now keeps its claim.
            let taken = Claim { lost: true, started: claim.started, ..settled(claim.attempt) };
            let written =
                broker.update(Bucket::Claims, &key, encode(&taken), entry.revision).await?;
            if written.is_none() {
                return Ok(());
            }
            tracing::warn!(
                job.id = %job,
                claim.place,
                claim.worker,
                "a cancelled job's worker is gone, its job is ended without it"
            );
        }
        let outcome = Outcome::Cancelled { message: CANCELLED.to_owned() };
        put(broker, &staged.with(Invoked::passed_on(outcome))).await?;
        Holds::new(Arc::clone(&self.broker)).drop_of_ended(job).await
    }

    /// Forgets all claims but those of these jobs.
    pub fn keep_only(&self, jobs: &HashSet<JobId>) {
        self.seen.keep_only(jobs);
    }
}
