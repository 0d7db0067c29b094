//! The runtime: brings deliveries to steps, and does with their answers what a step may not do
//! itself. The rules that make repetition harmless live here, in [`deliver`].

mod begun;
mod deliver;
pub(crate) use deliver::{put, stands};
mod keepalive;
mod slots;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use streams::broker::{Broker, Delivery};
use streams::phase::StepName;
use streams::topology;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::step::{Step, fits};
use crate::steps::{Act, Archive, Invoke, Resolve, Stage};

/// Deliveries of a short step that one worker works on at once, and that it asks for ahead: what
/// waits here is not reported in progress, so that is little.
const WIDTH: usize = 16;
const AHEAD: usize = 2;

/// Act may wait long for a program or for somebody's server. That must not keep other jobs from
/// their end.
const ACT_WIDTH: usize = 1024;

/// How long a worker that lost the broker waits before it asks again.
const RECONNECT: Duration = Duration::from_secs(1);

/// How long short steps may take to end when the worker is told to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// What the runtime itself needs, beside the steps.
#[derive(Clone)]
pub(crate) struct Runtime {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) stop: CancellationToken,
}

/// The steps that a worker runs; absent = another worker's.
#[derive(Default)]
pub struct Steps {
    /// submitted → resolved.
    pub resolve: Option<Resolve>,
    /// resolved → staged.
    pub stage: Option<Stage>,
    /// staged → invoked, in so many slots.
    pub invoke: Option<(Invoke, usize)>,
    /// invoked → acted.
    pub act: Option<Act>,
    /// acted → archived.
    pub archive: Option<Archive>,
}

/// Runs the steps until told to stop. Agents that run then go on; the next worker at this
/// place finds them.
pub async fn run(broker: Arc<dyn Broker>, steps: Steps, stop: CancellationToken) {
    let runtime = Runtime { broker, stop };
    let mut loops = JoinSet::new();
    if let Some(step) = steps.resolve {
        loops.spawn(short(runtime.clone(), step, WIDTH));
    }
    if let Some(step) = steps.stage {
        loops.spawn(short(runtime.clone(), step, WIDTH));
    }
    if let Some((step, slots)) = steps.invoke {
        loops.spawn(slots::run(runtime.clone(), step, slots));
    }
    if let Some(step) = steps.act {
        loops.spawn(short(runtime.clone(), step, ACT_WIDTH));
    }
    if let Some(step) = steps.archive {
        loops.spawn(short(runtime.clone(), step, WIDTH));
    }
    loops.join_all().await;
}

/// The loop of a step whose work is short: one consumer for all workspaces.
async fn short<S: Step>(runtime: Runtime, step: S, width: usize) {
    const { fits::<S>() };
    let step = Arc::new(step);
    let permits = Arc::new(Semaphore::new(width));
    let consumer = topology::step_consumer(S::NAME, "");
    let looked = CancellationToken::new();
    let begun = begun::run(runtime.clone(), Arc::clone(&step), Arc::clone(&permits), looked);
    let begun: JoinSet<_> = [begun].into_iter().collect();
    let mut work = JoinSet::new();
    while !runtime.stop.is_cancelled() {
        let deliveries = match runtime.broker.deliveries(&consumer, AHEAD).await {
            Ok(deliveries) => deliveries,
            Err(error) => {
                pause(&runtime, S::NAME, &error).await;
                continue;
            }
        };
        tokio::pin!(deliveries);
        loop {
            // Room first: a delivery that waits for room uses up its time at the server.
            let permit = tokio::select! {
                biased;
                () = runtime.stop.cancelled() => break,
                permit = Arc::clone(&permits).acquire_owned() => permit,
            };
            let Ok(permit) = permit else { return };
            while work.try_join_next().is_some() {}
            let delivery = tokio::select! {
                biased;
                () = runtime.stop.cancelled() => break,
                delivery = deliveries.next() => delivery,
            };
            match delivery {
                Some(Ok(delivery)) => {
                    let (runtime, step) = (runtime.clone(), Arc::clone(&step));
                    work.spawn(async move {
                        deliver::deliver(&runtime, &*step, delivery).await;
                        drop(permit);
                    });
                }
                Some(Err(error)) => {
                    pause(&runtime, S::NAME, &error).await;
                    break;
                }
                None => break,
            }
        }
    }
    drain(work).await;
    begun.join_all().await;
}

async fn drain(mut work: JoinSet<()>) {
    let _ = tokio::time::timeout(DRAIN, async { while work.join_next().await.is_some() {} }).await;
    // What is left is dropped and thereby given back.
}

async fn pause(runtime: &Runtime, step: StepName, error: &streams::broker::Error) {
    tracing::warn!(%step, %error, "no deliveries, asking again");
    tokio::select! {
        biased;
        () = runtime.stop.cancelled() => {}
        () = tokio::time::sleep(RECONNECT) => {}
    }
}

/// Tells the broker what became of a delivery; a word that is lost is made good by redelivery.
async fn settle(
    what: &'static str,
    done: impl Future<Output = Result<(), streams::broker::Error>>,
) {
    if let Err(error) = done.await {
        tracing::warn!(%error, "could not {what} a delivery");
    }
}

/// Gives a delivery back for about so long.
async fn give_back(delivery: Delivery, after: Duration) {
    let after = out_of_step(after, delivery.message.sequence, delivery.times);
    settle("give back", delivery.nak(after)).await;
}

/// Something between the half of a time and all of it, another each time. Workers look at a steady
/// pace: what came back at a steady pace, too, would meet the same one again and again, even where
/// that is the one at the wrong place.
fn out_of_step(after: Duration, of: u64, times: u64) -> Duration {
    const PARTS: u32 = 64;
    let drawn = of.wrapping_mul(29).wrapping_add(times.wrapping_mul(37)) % u64::from(PARTS);
    after * (PARTS + u32::try_from(drawn).unwrap_or_default()) / (2 * PARTS)
}

#[cfg(test)]
mod tests;
