//! Jobs that were begun with at this place by a worker that is gone. Their deliveries may come to
//! workers at other places again and again, who can do nothing with them, while the runs' leases
//! run out. So whoever comes back to the place looks for them himself, and does not wait for a
//! delivery: when that comes, the next fact stands.

use std::sync::Arc;
use std::time::Duration;

use streams::broker::Delivery;
use streams::fact::Fact;
use streams::subject;
use streams::topology::StreamName;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Runtime, deliver};
use crate::step::{Step, StepError};

/// How often it looks, beside at once: what goes on may be broken off, as when the store is away.
const LOOK: Duration = Duration::from_secs(15);

/// Looks until told to stop. What runs already takes its slot, and goes on where there is none.
pub(super) async fn run<S: Step>(runtime: Runtime, step: Arc<S>, slots: Arc<Semaphore>) {
    let mut work = JoinSet::new();
    let looking = async {
        loop {
            if let Err(error) = take_up(&runtime, &step, &slots, &mut work).await {
                tracing::warn!(step = %S::NAME, %error, "could not look for what was begun here");
            }
            while work.try_join_next().is_some() {}
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = runtime.stop.cancelled() => {}
        () = looking => {}
    }
    // What runs goes on without us.
    work.shutdown().await;
}

async fn take_up<S: Step>(
    runtime: &Runtime,
    step: &Arc<S>,
    slots: &Arc<Semaphore>,
    work: &mut JoinSet<()>,
) -> Result<(), StepError> {
    for job in step.begun_here().await? {
        let (stream, subject) = (StreamName::of(S::In::PHASE), subject::fact_of(S::In::PHASE, job));
        let Some(fact) = runtime.broker.next(stream, &subject, 0).await? else { continue };
        tracing::info!(job.id = %job, step = %S::NAME, "goes on with what was begun here");
        let slot = Arc::clone(slots).try_acquire_owned().ok();
        let (runtime, step) = (runtime.clone(), Arc::clone(step));
        work.spawn(async move {
            deliver::deliver(&runtime, &*step, Delivery::found(fact)).await;
            drop(slot);
        });
    }
    Ok(())
}
