//! Jobs that are decided and that no worker takes further: where none is left, the control plane
//! does itself what `Act` and `Archive` do for a job without a success.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use streams::broker::Broker;
use streams::envelope::Envelope;
use streams::fact::{Acted, Invoked, Produced};
use streams::id::JobId;
use streams::phase::Phase;

use super::stands;
use crate::logs::LogReader;
use crate::runtime::put;
use crate::step::{Context, Step, StepError};
use crate::steps::Archive;
use crate::store::Store;

/// Finishes a job whose agent's end was decided so long ago; says whether it is decided. Does
/// nothing otherwise; what workers do at the same moment comes to the same.
pub async fn finish(
    broker: &Arc<dyn Broker>,
    store: &Store,
    workspace: &str,
    job: JobId,
    unattended: Duration,
) -> Result<bool, StepError> {
    let Some(invoked) = Envelope::<Invoked>::stored(&**broker, workspace, job).await? else {
        return Ok(false);
    };
    let wait = SignedDuration::try_from(unattended).unwrap_or(SignedDuration::MAX);
    // What follows a success is for a worker: there the actions are installed.
    if invoked.fact.outcome.succeeded()
        || Timestamp::now().duration_since(invoked.at) < wait
        || stands(&**broker, Phase::Archived, workspace, job).await?
    {
        return Ok(true);
    }
    put(&**broker, &invoked.with(Acted::passed_on(invoked.fact.outcome.clone()))).await?;
    let Some(acted) = Envelope::<Acted>::stored(&**broker, workspace, job).await? else {
        return Ok(true);
    };
    let archive = Archive { store: store.clone(), logs: LogReader::new(Arc::clone(broker)) };
    let context = Context::new(&acted, Arc::clone(broker));
    let archived = acted.with(archive.run(&context, acted.fact.clone()).await?);
    tracing::info!(job.id = %job, "a job that no worker took further is finished");
    put(&**broker, &archived).await?;
    Ok(true)
}
