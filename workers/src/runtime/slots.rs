//! The loop of Invoke: as many agents at once as there are slots, workspaces in turn, and of each
//! no more than its limit.
//!
//! A delivery is fetched only when a slot and a seat are free for it, so none waits here using up
//! its time at the server while another worker has room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use streams::broker::{Broker, Delivery, Error};
use streams::phase::{Phase, StepName};
use streams::{subject, topology};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Runtime, begun, deliver, give_back, out_of_step, pause};
use crate::meter;
use crate::seats::Seats;
use crate::step::{Step, fits};
use crate::steps::Invoke;

/// Hints may be lost, and what another worker gives back comes without one: look at least so often.
const LOOK: Duration = Duration::from_secs(3);

/// A hint may come a moment before its message can be fetched: look again so soon.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long a job for which there is no seat is left alone.
const NO_SEAT: Duration = Duration::from_secs(4);

pub(super) async fn run(runtime: Runtime, step: Invoke, slots: usize) {
    const { fits::<Invoke>() };
    let step = Arc::new(step);
    let free = Arc::new(Semaphore::new(slots));
    meter::count(|meter| meter.slots(slots, &free));
    let looked = CancellationToken::new();
    let begun = begun::run(runtime.clone(), Arc::clone(&step), Arc::clone(&free), looked.clone());
    let begun: JoinSet<_> = [begun].into_iter().collect();
    let mut work = JoinSet::new();
    // Kept when the broker fails: a consumer that somebody removed is made again only because
    // its workspace is still known here.
    let mut workspaces = Workspaces::default();
    // Agents that run since before take their slots first, or there would be more than slots.
    tokio::select! {
        biased;
        () = runtime.stop.cancelled() => {}
        () = looked.cancelled() => {}
    }
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
    let mut hints = hints(&*runtime.broker, &step.seats).await?;
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
    let (mut is_hinted, mut refreshed) = (true, Instant::now());
    let mut look = next_look();
    loop {
        let slot = tokio::select! {
            biased;
            () = runtime.stop.cancelled() => return Ok(()),
            slot = Arc::clone(free).acquire_owned() => slot,
        };
        let Ok(slot) = slot else { return Ok(()) };
        while work.try_join_next().is_some() {}
        // One look answers all the hints that came meanwhile.
        while let Some(Some(())) = hints.next().now_or_never() {
            is_hinted = true;
        }
        if is_hinted {
            look = LOOK_AGAIN;
        }
        // A workspace that is new has its turn also while the others have no end of jobs.
        if is_hinted || refreshed.elapsed() >= LOOK {
            workspaces.refresh(&*runtime.broker).await?;
            (is_hinted, refreshed) = (false, Instant::now());
        }
        match workspaces.next_delivery(&*runtime.broker, &step.seats).await? {
            Some(delivery) if has_seat(&step.seats, &delivery).await? => {
                spawn(runtime, step, slot, delivery, work);
            }
            Some(delivery) => give_back(delivery, NO_SEAT).await,
            None => {
                drop(slot);
                look = tokio::select! {
                    biased;
                    () = runtime.stop.cancelled() => return Ok(()),
                    hint = hints.next() => {
                        hint.ok_or_else(|| Error::Unavailable("no more hints".to_owned()))?;
                        is_hinted = true;
                        LOOK_AGAIN
                    }
                    () = step.seats.freed() => LOOK_AGAIN,
                    () = tokio::time::sleep(look) => next_look(),
                };
            }
        }
    }
}

/// A hint at each job that could be begun with, and where there are limits at each that is past
/// its run, since it has left a seat.
async fn hints(broker: &dyn Broker, seats: &Seats) -> Result<BoxStream<'static, ()>, Error> {
    let staged = broker.hints(&subject::facts(StepName::Invoke.consumes())).await?;
    if !seats.are_limited() {
        return Ok(staged);
    }
    let invoked = broker.hints(&subject::facts(Phase::Invoked)).await?;
    Ok(stream::select(staged, invoked).boxed())
}

/// Takes a seat for what was delivered. What is no fact takes none: its step says what it is.
async fn has_seat(seats: &Seats, delivery: &Delivery) -> Result<bool, Error> {
    match subject::parse_fact(&delivery.message.subject) {
        Ok(fact) => seats.take(&fact.workspace, fact.job).await,
        Err(_) => Ok(true),
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
struct Workspaces(VecDeque<Workspace>);

struct Workspace {
    name: String,
    /// When it is looked at although all of its seats are taken: a job that has one may come back,
    /// as when its worker died.
    look_at: Instant,
}

impl Workspaces {
    /// The next delivery of the first workspace that has one and a seat for it; that workspace
    /// goes to the end.
    async fn next_delivery(
        &mut self,
        broker: &dyn Broker,
        seats: &Seats,
    ) -> Result<Option<Delivery>, Error> {
        for _ in 0..self.0.len() {
            let Some(mut workspace) = self.0.pop_front() else { break };
            let consumer = topology::step_consumer(StepName::Invoke, &workspace.name);
            let now = Instant::now();
            let is_due = now >= workspace.look_at;
            let found = match seats.is_free(&workspace.name).await {
                Ok(false) if !is_due => Ok(Vec::new()),
                Ok(is_free) => {
                    if !is_free {
                        workspace.look_at = now + LOOK;
                    }
                    broker.fetch(&consumer, 1).await
                }
                Err(error) => Err(error),
            };
            self.0.push_back(workspace);
            if let Some(delivery) = found?.pop() {
                return Ok(Some(delivery));
            }
        }
        Ok(None)
    }

    /// Adds workspaces that have a consumer since.
    async fn refresh(&mut self, broker: &dyn Broker) -> Result<(), Error> {
        for consumer in broker.consumers(topology::StreamName::Jobs).await? {
            if let Some(name) = topology::scope_of(Invoke::NAME, &consumer)
                && !self.0.iter().any(|workspace| workspace.name == name)
            {
                self.0.push_back(Workspace { name, look_at: Instant::now() });
            }
        }
        Ok(())
    }
}
