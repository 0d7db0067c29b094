//! What the control plane does in the place of a worker: ends a cancelled job that no worker
//! has begun with, so that it does not wait for a slot to be told so.

use streams::broker::{Broker, Error};
use streams::fact::{Invoked, Produced};
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, StreamName};

use crate::runtime::put_invoked;

/// The sentence of every cancelled job.
pub(crate) const CANCELLED: &str = "the job was cancelled";

/// Publishes the end of a job that is staged, cancelled, and claimed by nobody. Does nothing
/// otherwise; call it again later.
///
/// The cancel must stand in `ends` before this is called: a worker first claims and then looks
/// there, so either it is seen here, or it sees the cancel.
pub async fn settle_cancel(broker: &dyn Broker, workspace: &str, job: JobId) -> Result<(), Error> {
    let staged = subject::fact(Phase::Staged, workspace, job);
    if broker.last(StreamName::of(Phase::Staged), &staged).await?.is_none() {
        return Ok(());
    }
    if broker.get(Bucket::Claims, &job.to_string()).await?.is_some() {
        return Ok(());
    }
    let outcome = Outcome::Cancelled { message: CANCELLED.to_owned() };
    put_invoked(broker, workspace, job, Invoked::passed_on(outcome)).await
}
