//! What the control plane does in the place of a worker: ends a job whose agent nobody has
//! started, because it was cancelled or because its time to be started is over; and, in files of
//! their own, jobs whose worker, facts or further steps are gone.
//!
//! The claim decides between the two sides. A worker notes in it, right before, that it starts
//! the agent; here it is settled instead. Each is one write upon exactly what was read, so either
//! the agent runs and nothing is done here, or it is never started.

mod lost;
mod unattended;
mod vanished;

use std::sync::Arc;

use bytes::Bytes;
use streams::broker::{Broker, Error};
use streams::claim::{self, Claim, Decision};
use streams::code::Code;
use streams::envelope::Envelope;
use streams::fact::{Invoked, Produced, Resolved, Staged};
use streams::id::{Attempt, JobId};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::QueueLimit;
use streams::topology::Bucket;

pub use lost::LostClaims;
pub use unattended::finish;
pub use vanished::{give_up, is_vanished};

use crate::ends::Ends;
use crate::holds::Holds;
use crate::runtime::{put, stands};

/// The sentence of every cancelled job.
pub(crate) const CANCELLED: &str = "the job was cancelled";

/// Who settles claims, and who closes the end of a job that was not started in time.
const HERE: &str = "control";

/// How often a claim that changes meanwhile is read again before the caller has to come back.
const TRIES: usize = 3;

/// Ends a job that is cancelled and whose agent nobody has started. Does nothing otherwise; call
/// it again later. The cancel must stand in `ends` before.
pub async fn settle_cancel(
    broker: &Arc<dyn Broker>,
    workspace: &str,
    job: JobId,
) -> Result<(), Error> {
    if !Ends::new(Arc::clone(broker)).is_cancelled(job).await? {
        return Ok(());
    }
    settle(broker, workspace, job, None).await
}

/// Ends a job whose agent nobody has started and whose time to be started is over. Does nothing
/// otherwise; call it again later.
pub async fn settle_overdue(
    broker: &Arc<dyn Broker>,
    workspace: &str,
    job: JobId,
    limit: &QueueLimit,
) -> Result<(), Error> {
    if !limit.is_over() {
        return Ok(());
    }
    settle(broker, workspace, job, Some(limit)).await
}

/// How a job ends whose agent was not started in time: so, unless somebody cancelled it before
/// that was decided.
pub(crate) async fn not_in_time(
    ends: &Ends,
    job: JobId,
    limit: &QueueLimit,
) -> Result<Outcome, Error> {
    Ok(match ends.decide(job, Decision::Closed, HERE).await? {
        Decision::Cancel => Outcome::Cancelled { message: CANCELLED.to_owned() },
        Decision::Closed => {
            let message = format!(
                "not started in time: no agent ran {} s after the submission \
                 (queue_timeout_seconds)",
                limit.seconds
            );
            Outcome::TimedOut { code: Code::QueueTimeout, message }
        }
    })
}

/// Ends a job that is cancelled, or late by a limit. Until a job is resolved it has no fact that
/// could be passed on. From then on its end needs no worker; one that is still at its staging
/// finds that it was late.
async fn settle(
    broker: &Arc<dyn Broker>,
    workspace: &str,
    job: JobId,
    limit: Option<&QueueLimit>,
) -> Result<(), Error> {
    if stands(&**broker, Phase::Invoked, workspace, job).await? {
        return Ok(());
    }
    let staged = Envelope::<Staged>::stored(&**broker, workspace, job).await?;
    let resolved = Envelope::<Resolved>::stored(&**broker, workspace, job).await?;
    let is_staged = staged.is_some();
    // What is decided already goes its way, and no fact after it says otherwise.
    let (before, decided) = match (staged, resolved) {
        (Some(staged), _) => (staged.with(()), staged.fact.outcome),
        (None, Some(resolved)) => (resolved.with(()), resolved.fact.outcome),
        (None, None) => return Ok(()),
    };
    let outcome = match (decided, limit) {
        (Some(decided), _) => decided,
        (None, _) if !bar(&**broker, job).await? => return Ok(()),
        (None, Some(limit)) => not_in_time(&Ends::new(Arc::clone(broker)), job, limit).await?,
        (None, None) => Outcome::Cancelled { message: CANCELLED.to_owned() },
    };
    if !is_staged {
        put(&**broker, &before.with(Staged::passed_on(outcome.clone()))).await?;
    }
    put(&**broker, &before.with(Invoked::passed_on(outcome))).await?;
    Holds::new(Arc::clone(broker)).drop_of_ended(job).await
}

/// Settles the claim, so that no worker ever starts the agent; `false` when one has, or may have.
async fn bar(broker: &dyn Broker, job: JobId) -> Result<bool, Error> {
    let key = claim::agent_key(job);
    for _ in 0..TRIES {
        let written = match broker.get(Bucket::Claims, &key).await? {
            None => broker.create(Bucket::Claims, &key, encode(&settled(Attempt::FIRST))).await?,
            Some(entry) => match serde_json::from_slice::<Claim>(&entry.value) {
                Ok(claim) if claim.settled => return Ok(true),
                Ok(claim) if is_untouched(&claim) => {
                    broker
                        .update(
                            Bucket::Claims,
                            &key,
                            encode(&settled(Attempt::FIRST)),
                            entry.revision,
                        )
                        .await?
                }
                _ => return Ok(false),
            },
        };
        if written.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether no agent was started under a claim, nor was about to be.
fn is_untouched(claim: &Claim) -> bool {
    claim.attempt == Attempt::FIRST && !claim.started && !claim.lost
}

/// A claim under which nothing is started any more.
fn settled(attempt: Attempt) -> Claim {
    Claim { attempt, done: true, settled: true, ..Claim::new(HERE, HERE) }
}

fn encode(claim: &Claim) -> Bytes {
    // Names, numbers and times always have a JSON form.
    serde_json::to_vec(claim).unwrap_or_default().into()
}

#[cfg(test)]
mod tests;
