//! Jobs that were begun with at this place by a worker that is gone. Their deliveries may come to
//! workers at other places again and again, who can do nothing with them, while the runs' leases
//! run out. So whoever comes back to the place looks for them himself, and does not wait for a
//! delivery: when that comes, the next fact stands.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use streams::broker::Delivery;
use streams::fact::Fact;
use streams::subject;
use streams::topology::StreamName;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Runtime, deliver};
use crate::step::{Step, StepError};

/// How often it looks, beside at once: what goes on may be broken off, as when the store is away.
const LOOK: Duration = Duration::from_secs(15);

/// The same until it has looked for the first time: nothing new is begun before.
const LOOK_FIRST: Duration = Duration::from_secs(1);

/// Looks until told to stop; `looked` once all that was begun before has its slot.
pub(super) async fn run<S: Step>(
    runtime: Runtime,
    step: Arc<S>,
    slots: Arc<Semaphore>,
    looked: CancellationToken,
) {
    let mut work = JoinSet::new();
    let looking = async {
        loop {
            match take_up(&runtime, &step, &slots, &mut work).await {
                Ok(()) => looked.cancel(),
                Err(error) => {
                    tracing::warn!(step = %S::NAME, %error, "could not look for what was begun here");
                }
            }
            while work.try_join_next().is_some() {}
            tokio::time::sleep(if looked.is_cancelled() { LOOK } else { LOOK_FIRST }).await;
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
        if let Ok(of) = subject::parse_fact(&fact.subject) {
            step.takes_up(&of.workspace, job).await?;
        }
        // What runs already goes on also where there is no slot for it, and is then in line for
        // the next one, before anything new: asked once, it has its place there.
        let mut slot = Box::pin(Arc::clone(slots).acquire_owned());
        let at_once = (&mut slot).now_or_never();
        let (runtime, step) = (runtime.clone(), Arc::clone(step));
        work.spawn(async move {
            let mut working =
                std::pin::pin!(deliver::deliver(&runtime, &*step, Delivery::found(fact)));
            let _slot = match at_once {
                Some(slot) => slot,
                None => tokio::select! {
                    biased;
                    () = &mut working => return,
                    slot = slot => slot,
                },
            };
            working.await;
        });
    }
    Ok(())
}
