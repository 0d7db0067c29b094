//! The loop of Invoke: as many agents at once as there are slots, workspaces in turn.
//!
//! A delivery is fetched only when a slot is free for it, so none waits here using up its time
//! at the server while another worker has room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use streams::broker::{Broker, Delivery, Error};
use streams::phase::StepName;
use streams::{subject, topology};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::{Runtime, begun, deliver, out_of_step, pause};
use crate::step::{Step, fits};
use crate::steps::Invoke;

/// Hints may be lost, and what another worker gives back comes without one: look at least so often.
const LOOK: Duration = Duration::from_secs(3);

/// A hint may come a moment before its message can be fetched: look again so soon.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(super) async fn run(runtime: Runtime, step: Invoke, slots: usize) {
    const { fits::<Invoke>() };
    let step = Arc::new(step);
    let free = Arc::new(Semaphore::new(slots));
    let begun = begun::run(runtime.clone(), Arc::clone(&step), Arc::clone(&free));
    let begun: JoinSet<_> = [begun].into_iter().collect();
    let mut work = JoinSet::new();
    // Kept when the broker fails: a consumer that somebody removed is made again only because
    // its workspace is still known here.
    let mut workspaces = Workspaces::default();
    while !runtime.stop.is_cancelled() {
        if let Err(error) = turn(&runtime, &step, &free, &mut workspaces, &mut work).await {
            pause(&runtime, StepName::Invoke, &error).await;
        }
    }
    // Dropping the work gives the deliveries back; the agents go on.
    work.shutdown().await;
    begun.join_all().await;
}

/// Works until the broker fails or the worker is told to stop.
async fn turn(
    runtime: &Runtime,
    step: &Arc<Invoke>,
    free: &Arc<Semaphore>,
    workspaces: &mut Workspaces,
    work: &mut JoinSet<()>,
) -> Result<(), Error> {
    let phase = StepName::Invoke.consumes();
    let mut hints = runtime.broker.hints(&subject::facts(phase)).await?;
    workspaces.refresh(&*runtime.broker).await?;
    // A hint wakes all workers at once. From then on each place looks at other times, or the same
    // one would always be the first to see what was given back.
    let place = step
        .claims
        .place()
        .bytes()
        .fold(0_u64, |number, byte| number.wrapping_mul(31).wrapping_add(byte.into()));
    let mut looks = 0_u64;
    let mut next_look = || {
        looks += 1;
        out_of_step(LOOK, place, looks)
    };
    let mut look = next_look();
    loop {
        let slot = tokio::select! {
            biased;
            () = runtime.stop.cancelled() => return Ok(()),
            slot = Arc::clone(free).acquire_owned() => slot,
        };
        let Ok(slot) = slot else { return Ok(()) };
        while work.try_join_next().is_some() {}
        match workspaces.next_delivery(&*runtime.broker).await? {
            Some(delivery) => spawn(runtime, step, slot, delivery, work),
            None => {
                drop(slot);
                look = tokio::select! {
                    biased;
                    () = runtime.stop.cancelled() => return Ok(()),
                    hint = hints.next() => {
                        hint.ok_or_else(|| Error::Unavailable("no more hints".to_owned()))?;
                        LOOK_AGAIN
                    }
                    () = tokio::time::sleep(look) => next_look(),
                };
                // One look answers all the hints that came meanwhile.
                while let Some(Some(())) = hints.next().now_or_never() {}
                workspaces.refresh(&*runtime.broker).await?;
            }
        }
    }
}

fn spawn(
    runtime: &Runtime,
    step: &Arc<Invoke>,
    slot: OwnedSemaphorePermit,
    delivery: Delivery,
    work: &mut JoinSet<()>,
) {
    let (runtime, step) = (runtime.clone(), Arc::clone(step));
    work.spawn(async move {
        deliver::deliver(&runtime, &*step, delivery).await;
        drop(slot);
    });
}

/// The workspaces that have a consumer, in the order in which their turn comes.
#[derive(Default)]
struct Workspaces(VecDeque<String>);

impl Workspaces {
    /// The next delivery of the first workspace that has one; that workspace goes to the end.
    async fn next_delivery(&mut self, broker: &dyn Broker) -> Result<Option<Delivery>, Error> {
        for _ in 0..self.0.len() {
            let Some(workspace) = self.0.pop_front() else { break };
            let consumer = topology::step_consumer(StepName::Invoke, &workspace);
            self.0.push_back(workspace);
            if let Some(delivery) = broker.fetch(&consumer, 1).await?.pop() {
                return Ok(Some(delivery));
            }
        }
        Ok(None)
    }

    /// Adds workspaces that have a consumer since.
    async fn refresh(&mut self, broker: &dyn Broker) -> Result<(), Error> {
        for consumer in broker.consumers(topology::StreamName::Jobs).await? {
            if let Some(workspace) = topology::scope_of(Invoke::NAME, &consumer)
                && !self.0.contains(&workspace)
            {
                self.0.push_back(workspace);
            }
        }
        Ok(())
    }
}
