//! Consumers that are gone. A workspace's is made with each of its jobs that is staged; one that
//! somebody removed while no worker knew of the workspace is made here, or its jobs would wait
//! until there is another one.

use streams::broker::Broker;
use streams::phase::StepName;
use streams::topology;

use super::Error;
use crate::records::Records;

/// Sees to it that each workspace with jobs to be run has its consumer.
pub(super) async fn ensure(records: &Records, broker: &dyn Broker) -> Result<(), Error> {
    let step = StepName::Invoke;
    let names = broker.consumers(topology::StreamName::of(step.consumes())).await?;
    for workspace in records.jobs().busy_workspaces().await? {
        let consumer = topology::step_consumer(step, &workspace);
        if !names.contains(&consumer.name) {
            tracing::warn!(workspace, "the consumer of a workspace with jobs is gone: made anew");
            broker.ensure_consumer(&consumer).await?;
        }
    }
    Ok(())
}
