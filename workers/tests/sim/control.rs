//! Everybody else: who submits and cancels, the control plane that does it again until it is done,
//! and what happens by itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use streams::broker::{self, Broker, Published};
use streams::claim::{Decision, action_key};
use streams::envelope::Envelope;
use streams::fact::Submitted;
use streams::phase::{Phase, StepName};
use streams::snapshot::QueueLimit;
use streams::subject;
use streams::topology::{self, Bucket, StreamName};
use workers::control::{settle_cancel, settle_overdue};
use workers::ends::Ends;
use workers::holds::Holds;

use crate::plan::{Event, WORKSPACE};
use crate::process::Process;
use crate::queue::Queue;
use crate::world::World;

/// How often what failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Does what the plan says, each thing at its time, until all of it is done.
pub(crate) async fn live(world: Arc<World>) {
    let events = world.plan.events.iter().map(|(at, event)| {
        let (at, event, world) = (world.began + *at, *event, Arc::clone(&world));
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            world.tell(|| format!("{event:?}"));
            happen(&world, event).await;
        })
    });
    let happening: Vec<_> = events.collect();
    for event in happening {
        event.await.expect("what happens does not panic");
    }
}

/// Each has a process of its own, and where that dies another one begins again.
async fn happen(world: &Arc<World>, event: Event) {
    match event {
        Event::Kill(worker) => return world.kill(worker),
        Event::LosePlace(place) => return lose(world, place),
        Event::LoseConsumer(step) => {
            let workspace = if step == StepName::Invoke as usize { WORKSPACE } else { "" };
            let consumer = topology::step_consumer(StepName::ALL[step], workspace);
            return world.memory.delete_consumer(&consumer);
        }
        Event::QueueAway { .. } => return,
        _ => {}
    }
    loop {
        let process = Process::new(Arc::clone(world), world.plan.workers.len());
        let broker: Arc<dyn Broker> = Arc::new(Queue(Arc::clone(&process)));
        let done = tokio::select! {
            biased;
            () = process.death() => Ok(false),
            done = ask(world, &broker, event) => done,
        };
        if matches!(done, Ok(true)) {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Says whether there is nothing more to do.
async fn ask(world: &World, broker: &Arc<dyn Broker>, event: Event) -> Result<bool, broker::Error> {
    let holds = Holds::new(Arc::clone(broker));
    let id = |job: usize| world.plan.jobs[job].id;
    let (job, is_settled) = match event {
        Event::Submit(job) => {
            let fact = Submitted { spec: None, name: None, record: None };
            let workspace = WORKSPACE.to_owned();
            let at = Timestamp::now();
            let envelope = Envelope { job: id(job), workspace, at, traceparent: None, fact };
            let published = broker.publish(envelope.publication()?).await?;
            return Ok(matches!(published, Published::Stored(_) | Published::Exists));
        }
        Event::Cancel(job) => {
            let ends = Ends::new(Arc::clone(broker));
            if ends.decide(id(job), Decision::Cancel, "a user").await? == Decision::Closed {
                return Ok(true);
            }
            (job, settle_cancel(broker, WORKSPACE, id(job)).await)
        }
        Event::Overdue(job) => {
            let over = QueueLimit { seconds: 1.0, at: Timestamp::UNIX_EPOCH };
            (job, settle_overdue(broker, WORKSPACE, id(job), &over).await)
        }
        Event::Hold(job) => {
            holds.hold(id(job), "a user").await?;
            world.history().held.insert(job);
            return Ok(true);
        }
        // Who lets a job go has seen that it is held.
        Event::Release(job) if !world.history().held.contains(&job) => return Ok(false),
        Event::Release(job) => return holds.release(id(job)).await.map(|()| true),
        Event::Purge(job) => return purge(world, broker, job).await,
        _ => return Ok(true),
    };
    is_settled?;
    // Also when its facts are gone from the streams by now.
    Ok(world.history().tells(job, Phase::Invoked))
}

/// Takes the messages of a finished job out of the streams, in the sweeper's order.
async fn purge(world: &World, broker: &Arc<dyn Broker>, job: usize) -> Result<bool, broker::Error> {
    let archived = subject::fact(Phase::Archived, WORKSPACE, world.plan.jobs[job].id);
    if broker.last(StreamName::of(Phase::Archived), &archived).await?.is_none() {
        return Ok(world.history().tells(job, Phase::Archived));
    }
    let id = world.plan.jobs[job].id;
    for phase in Phase::CHAIN {
        broker.purge(StreamName::of(phase), &subject::fact(phase, WORKSPACE, id)).await?;
    }
    broker.purge(StreamName::Logs, &subject::logs(WORKSPACE, id)).await?;
    broker.purge(StreamName::Status, &subject::status(WORKSPACE, id)).await?;
    for bucket in Bucket::ALL {
        broker.remove(bucket, &id.to_string()).await?;
    }
    broker.remove(Bucket::Claims, &action_key(id)).await?;
    Ok(true)
}

/// A place burns down.
fn lose(world: &World, place: usize) {
    let now = world.now();
    let mut places = world.places();
    places[place].lost = Some(now);
    let ends: Vec<_> =
        places[place].runs.iter().map(|(key, run)| (*key, run.ended(now).unwrap_or(now))).collect();
    places[place].runs.clear();
    drop(places);
    let mut history = world.history();
    for ((job, attempt), until) in ends {
        let starts = history.starts.iter_mut();
        for start in starts.filter(|s| (s.job, s.attempt, s.place) == (job, attempt, place)) {
            start.until.get_or_insert(until);
        }
    }
    drop(history);
    for (number, _) in world.plan.workers.iter().enumerate().filter(|(_, at)| **at == place) {
        world.kill(number);
    }
}
