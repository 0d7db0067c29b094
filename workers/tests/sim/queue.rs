//! The queue as one process sees it: the broker in memory, with every call passing the plan.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use jiff::SignedDuration;
use serde_json::json;
use streams::broker::{
    Broker, Delivery, Entry, Error, Expect, Lag, Publication, Published, Room, Settle, Settler,
    Stored,
};
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, ConsumerSpec, StreamName};

use crate::calls::Op;
use crate::dice::{Dice, mixed};
use crate::history::Told;
use crate::planted::Planted;
use crate::process::{Broken, Process};

/// The way from one process to the queue.
#[derive(Clone)]
pub(crate) struct Queue(pub(crate) Arc<Process>);

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::Unavailable(broken.to_string())
    }
}

impl Queue {
    fn job(&self, name: &str) -> Option<usize> {
        self.0.world.job_in(name)
    }

    fn wrap(&self, delivery: Delivery) -> Delivery {
        let job = self.job(&delivery.message.subject);
        let process = Arc::clone(&self.0);
        let subject = delivery.message.subject.clone();
        delivery.settled_by(|inner| Arc::new(Way { process, inner, job, subject }))
    }

    /// A delivery that comes while the queue is away does not: its word is lost with it.
    fn arrived(&self, delivery: Delivery) -> Result<Delivery, Error> {
        if self.0.world.queue_is_away(self.0.number) {
            return Err(Error::Unavailable("the queue is away".to_owned()));
        }
        Ok(delivery)
    }

    /// The same delivery once more, where the plan has it doubled.
    fn again(&self, consumer: u64, delivery: &Delivery) -> Option<Delivery> {
        let Delivery { message, times, .. } = delivery;
        let plan = &self.0.world.plan;
        let seed = mixed(&[plan.seed, consumer, message.sequence, *times]);
        let doubled = Dice::new(seed).percent(plan.doubled);
        doubled.then(|| Some(Delivery::new(message.clone(), times + 1, delivery.settler()?)))?
    }

    /// Times as they would be had the clock of this machine gone as fast as the world's.
    fn dated(&self, stored: Stored) -> Stored {
        let stored_at = self.0.world.history().stored_at(&stored.subject);
        let ago = self.0.world.now().saturating_sub(stored_at.unwrap_or_default());
        let ago = SignedDuration::try_from(ago).unwrap_or_default();
        Stored { at: jiff::Timestamp::now() - ago, ..stored }
    }

    /// Stores a message, and remembers that it was.
    async fn store(&self, publication: Publication) -> Result<Published, Error> {
        let world = &self.0.world;
        let planted = world.planted;
        let Ok(fact) = subject::parse_fact(&publication.subject) else {
            let published = world.memory.publish(publication.clone()).await?;
            if planted == Some(Planted::LogTwice) && publication.subject.starts_with("logs.") {
                let again = Publication { expect: Expect::Any, ..publication.clone() };
                return world.memory.publish(again).await;
            }
            return Ok(published);
        };
        let mut publication = publication;
        match (planted, fact.phase) {
            (Some(Planted::LostFact), Phase::Acted) => return Ok(Published::Stored(0)),
            (Some(Planted::OtherStory), Phase::Acted) => {
                publication.payload = ended_otherwise(&publication.payload);
            }
            _ => {}
        }
        let published = world.memory.publish(publication.clone()).await?;
        let Some(job) = self.job(&publication.subject) else { return Ok(published) };
        if published == Published::Exists && planted != Some(Planted::SecondFact) {
            return Ok(published);
        }
        let Publication { subject, payload, .. } = publication;
        let told = Told { job, phase: fact.phase, subject, payload, at: world.now() };
        let mut history = world.history();
        if planted == Some(Planted::OtherEnd) && fact.phase == Phase::Archived {
            let payload = ended_otherwise(&told.payload);
            history.facts.push(Told { payload, ..told.clone() });
        }
        if planted == Some(Planted::LostObject) && fact.phase == Phase::Invoked {
            world.objects.remove_one_of(&world.plan.jobs[job].id.to_string());
        }
        history.facts.push(told);
        world.moved.notify_one();
        Ok(published)
    }

    fn note_sent(&self, job: usize, message_id: &str, payload: &Bytes) {
        let mut history = self.0.world.history();
        let mut message_id = message_id.to_owned();
        if self.0.world.planted == Some(Planted::OtherMessage) {
            message_id += &history.sent.len().to_string();
        }
        history.sent.push((job, message_id, payload.clone()));
    }

    /// Whether this process does not hear what was decided of ends.
    fn is_deaf(&self, bucket: Bucket) -> bool {
        let world = &self.0.world;
        let deaf = world.planted == Some(Planted::DeafEnds) && bucket == Bucket::Ends;
        deaf && self.0.number < world.plan.workers.len()
    }
}

/// The same fact with another outcome.
fn ended_otherwise(payload: &[u8]) -> Bytes {
    let mut fact: serde_json::Value = serde_json::from_slice(payload).expect("a fact is JSON");
    fact["outcome"] = json!({"kind": "cancelled", "message": "told otherwise"});
    fact.to_string().into()
}

#[async_trait]
impl Broker for Queue {
    // No step asks for these two.
    async fn room(&self, stream: StreamName) -> Result<Option<Room>, Error> {
        self.0.world.memory.room(stream).await
    }

    async fn lag(&self, consumer: &ConsumerSpec) -> Result<Lag, Error> {
        self.0.world.memory.lag(consumer).await
    }

    async fn publish(&self, publication: Publication) -> Result<Published, Error> {
        let job = self.job(&publication.subject);
        let subject = publication.subject.clone();
        let effect = self.store(publication);
        let published = self.0.call(Op::Publish, job, effect).await?;
        self.0.tell(|| format!("publishes {subject}: {published:?}"));
        published
    }

    async fn send(&self, subject: &str, message_id: &str, payload: Bytes) -> Result<(), Error> {
        let job = self.job(message_id);
        let effect = async {
            self.note_sent(job.unwrap_or_default(), message_id, &payload);
            self.0.world.memory.send(subject, message_id, payload).await
        };
        self.0.call(Op::Send, job, effect).await?
    }

    async fn last(&self, stream: StreamName, subject: &str) -> Result<Option<Stored>, Error> {
        let effect = self.0.world.memory.last(stream, subject);
        let found = self.0.call(Op::Last, self.job(subject), effect).await??;
        Ok(found.map(|stored| self.dated(stored)))
    }

    async fn next(
        &self,
        stream: StreamName,
        subject: &str,
        from: u64,
    ) -> Result<Option<Stored>, Error> {
        let op = if stream == StreamName::Logs { Op::ReadLog } else { Op::Next };
        let effect = self.0.world.memory.next(stream, subject, from);
        let found = self.0.call(op, self.job(subject), effect).await??;
        Ok(found.map(|stored| self.dated(stored)))
    }

    async fn at(&self, stream: StreamName, sequence: u64) -> Result<Option<Stored>, Error> {
        self.0.call(Op::At, None, self.0.world.memory.at(stream, sequence)).await?
    }

    async fn purge(&self, stream: StreamName, subject: &str) -> Result<(), Error> {
        let effect = self.0.world.memory.purge(stream, subject);
        self.0.call(Op::Purge, self.job(subject), effect).await?
    }

    async fn discard(&self, stream: StreamName, sequence: u64) -> Result<(), Error> {
        let effect = self.0.world.memory.discard(stream, sequence);
        self.0.call(Op::Purge, None, effect).await?
    }

    async fn ensure_consumer(&self, consumer: &ConsumerSpec) -> Result<(), Error> {
        self.0.call(Op::Ensure, None, self.0.world.memory.ensure_consumer(consumer)).await?
    }

    async fn consumers(&self, stream: StreamName) -> Result<Vec<String>, Error> {
        self.0.call(Op::Consumers, None, self.0.world.memory.consumers(stream)).await?
    }

    async fn deliveries(
        &self,
        consumer: &ConsumerSpec,
        _ahead: usize,
    ) -> Result<BoxStream<'static, Result<Delivery, Error>>, Error> {
        // One at a time: what waits unwrapped here would be given back when its process is dead.
        let effect = self.0.world.memory.deliveries(consumer, 1);
        let deliveries = self.0.call(Op::Deliveries, None, effect).await??;
        let (queue, name) = (self.clone(), consumer.name.len() as u64);
        let wrapped = deliveries.flat_map(move |delivery| {
            let arrived = delivery.and_then(|delivery| queue.arrived(queue.wrap(delivery)));
            let again = arrived.as_ref().ok().and_then(|one| queue.again(name, one)).map(Ok);
            stream::iter([Some(arrived), again].into_iter().flatten())
        });
        Ok(wrapped.boxed())
    }

    async fn fetch(&self, consumer: &ConsumerSpec, max: usize) -> Result<Vec<Delivery>, Error> {
        let effect = async {
            let fetched = self.0.world.memory.fetch(consumer, max).await?;
            Ok(fetched.into_iter().map(|delivery| self.wrap(delivery)).collect())
        };
        self.0.call(Op::Fetch, None, effect).await?
    }

    async fn hints(&self, subject: &str) -> Result<BoxStream<'static, ()>, Error> {
        self.0.call(Op::Hints, None, self.0.world.memory.hints(subject)).await?
    }

    async fn get(&self, bucket: Bucket, key: &str) -> Result<Option<Entry>, Error> {
        if self.is_deaf(bucket) {
            return Ok(None);
        }
        let effect = self.0.world.memory.get(bucket, key);
        self.0.call(Op::Get, self.job(key), effect).await?
    }

    async fn create(&self, bucket: Bucket, key: &str, value: Bytes) -> Result<Option<u64>, Error> {
        if self.is_deaf(bucket) {
            return Ok(Some(0));
        }
        let effect = self.0.world.memory.create(bucket, key, value);
        let created = self.0.call(Op::Create, self.job(key), effect).await?;
        self.0.tell(|| format!("creates {} {key}: {created:?}", bucket.as_str()));
        created
    }

    async fn update(
        &self,
        bucket: Bucket,
        key: &str,
        value: Bytes,
        revision: u64,
    ) -> Result<Option<u64>, Error> {
        let effect = self.0.world.memory.update(bucket, key, value, revision);
        let updated = self.0.call(Op::Update, self.job(key), effect).await?;
        self.0.tell(|| format!("updates {} {key} at {revision}: {updated:?}", bucket.as_str()));
        updated
    }

    async fn remove(&self, bucket: Bucket, key: &str) -> Result<(), Error> {
        let effect = self.0.world.memory.remove(bucket, key);
        self.0.call(Op::Forget, self.job(key), effect).await?
    }
}

/// The way back of a delivery.
struct Way {
    process: Arc<Process>,
    inner: Arc<dyn Settler>,
    job: Option<usize>,
    subject: String,
}

#[async_trait]
impl Settler for Way {
    async fn settle(&self, settle: Settle) -> Result<(), Error> {
        let op = match settle {
            Settle::Ack => Op::Ack,
            Settle::Nak(_) => Op::Nak,
            Settle::Term => Op::Term,
            Settle::Progress => Op::Progress,
        };
        if op == Op::Ack && self.process.world.planted == Some(Planted::DeafAcks) {
            return Ok(());
        }
        let settled = self.process.call(op, self.job, self.inner.settle(settle)).await?;
        self.process.tell(|| format!("{settle:?} of {}", self.subject));
        settled
    }
}
