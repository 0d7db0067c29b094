//! The broker in memory: the same rules as the server's, for tests and simulations. It keeps
//! nothing on disk and forgets everything when it is dropped.
//!
//! What it answers depends on nothing but what it was asked and on tokio's clock: under a paused
//! clock the same questions in the same order have the same answers.

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use kept::Kept;

use crate::broker::{
    Broker, Delivery, Entry, Error, Lag, Publication, Published, Room, Settle, Settler, Stored,
};
use crate::topology::{
    ACK_WAIT, Bucket, ConsumerSpec, Limits, StreamName, shared_consumers, streams,
};

/// A broker that many tasks may share.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    published: broadcast::Sender<String>,
    /// Told whenever there may be something to deliver that was not there before.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    streams: BTreeMap<StreamName, Kept>,
    consumers: BTreeMap<(StreamName, String), Progress>,
    buckets: BTreeMap<(Bucket, String), Entry>,
    revision: u64,
    turns: u64,
}

#[derive(Default)]
struct Progress {
    filter: String,
    /// Who waits for deliveries. As at the server, who has waited longest is served first.
    waiting: BTreeSet<u64>,
    /// Sequences that were delivered at least once; those not in `open` are settled.
    delivered: u64,
    open: BTreeMap<u64, Open>,
}

struct Open {
    times: u64,
    again_at: Instant,
}

impl Memory {
    /// A broker with the streams and shared consumers of the chain.
    pub fn new(limits: Limits) -> Self {
        let mut state = State::default();
        for spec in streams(limits) {
            let kept = Kept { spec, messages: BTreeMap::new(), next: 1, ids: BTreeMap::new() };
            state.streams.insert(kept.spec.name, kept);
        }
        for consumer in shared_consumers() {
            state.ensure(&consumer);
        }
        let (published, _) = broadcast::channel(1024);
        Self { state: Arc::new(Mutex::new(state)), published, changed: Arc::default() }
    }

    /// Removes a durable consumer, as an operator might.
    pub fn delete_consumer(&self, consumer: &ConsumerSpec) {
        self.lock().consumers.remove(&(consumer.stream, consumer.name.clone()));
        self.changed.notify_waiters();
    }

    /// What was delivered and is not settled: the consumer's name, and the subject.
    pub fn unsettled(&self) -> Vec<(String, String)> {
        let state = self.lock();
        let consumers = state.consumers.iter().flat_map(|((stream, name), progress)| {
            let messages = state.streams.get(stream).map(|kept| &kept.messages);
            progress.open.keys().filter_map(move |sequence| {
                Some((name.clone(), messages?.get(sequence)?.subject.clone()))
            })
        });
        consumers.collect()
    }

    fn queue_up(&self, spec: &ConsumerSpec) -> Turn {
        let mut state = self.lock();
        state.ensure(spec);
        state.turns += 1;
        let (consumer, number) = ((spec.stream, spec.name.clone()), state.turns);
        if let Some(progress) = state.consumers.get_mut(&consumer) {
            progress.waiting.insert(number);
        }
        Turn { broker: self.clone(), consumer, number }
    }

    /// Waits until something of a consumer's may be there that was not there before `changed` was
    /// made: something happened, or the time of a message has come.
    async fn wait(&self, consumer: &ConsumerSpec, changed: impl Future<Output = ()>) {
        let due = self.lock().due(consumer);
        let due = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = changed => {}
            () = due => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn take(&self, spec: &ConsumerSpec, max: usize) -> Vec<Delivery> {
        self.lock()
            .take(spec, max)
            .into_iter()
            .map(|(message, times)| {
                let settler = MemorySettler {
                    broker: self.clone(),
                    consumer: (spec.stream, spec.name.clone()),
                    sequence: message.sequence,
                };
                Delivery::new(message, times, Arc::new(settler))
            })
            .collect()
    }
}

/// A place in the line of those who wait for deliveries, until it is dropped.
struct Turn {
    broker: Memory,
    consumer: (StreamName, String),
    number: u64,
}

impl Turn {
    /// Whether nobody has waited longer.
    fn has_come(&self) -> bool {
        let state = self.broker.lock();
        let progress = state.consumers.get(&self.consumer);
        let first = progress.and_then(|progress| progress.waiting.first());
        first.is_none_or(|first| *first >= self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(progress) = self.broker.lock().consumers.get_mut(&self.consumer) {
            progress.waiting.remove(&self.number);
        }
        self.broker.changed.notify_waiters();
    }
}

impl State {
    fn ensure(&mut self, spec: &ConsumerSpec) {
        let progress = self.consumers.entry((spec.stream, spec.name.clone())).or_default();
        progress.filter.clone_from(&spec.filter);
    }

    fn stream(&mut self, name: StreamName) -> Result<&mut Kept, Error> {
        self.streams.get_mut(&name).ok_or_else(|| Error::Missing(format!("stream {name:?}")))
    }

    /// When the first message that is out with somebody comes back, if nobody says anything.
    fn due(&self, consumer: &ConsumerSpec) -> Option<Instant> {
        let progress = self.consumers.get(&(consumer.stream, consumer.name.clone()))?;
        progress.open.values().map(|open| open.again_at).min()
    }

    /// Marks up to `max` messages as delivered and returns them with their delivery counts.
    fn take(&mut self, spec: &ConsumerSpec, max: usize) -> Vec<(Stored, u64)> {
        self.ensure(spec);
        let Some(kept) = self.streams.get(&spec.stream) else { return Vec::new() };
        let Some(progress) = self.consumers.get_mut(&(spec.stream, spec.name.clone())) else {
            return Vec::new();
        };
        let now = Instant::now();
        let mut taken = Vec::new();
        progress.open.retain(|sequence, _| kept.messages.contains_key(sequence));
        for (sequence, open) in &mut progress.open {
            if taken.len() < max && open.again_at <= now {
                open.times += 1;
                open.again_at = now + ACK_WAIT;
                taken.push((kept.messages[sequence].clone(), open.times));
            }
        }
        for (sequence, message) in kept.messages.range(progress.delivered + 1..) {
            if taken.len() == max {
                break;
            }
            progress.delivered = *sequence;
            if matches(&progress.filter, &message.subject) {
                let open = Open { times: 1, again_at: now + ACK_WAIT };
                progress.open.insert(*sequence, open);
                taken.push((message.clone(), 1));
            }
        }
        taken
    }
}

#[async_trait]
impl Broker for Memory {
    async fn publish(&self, publication: Publication) -> Result<Published, Error> {
        let subject = publication.subject.clone();
        let published = {
            let mut state = self.lock();
            let kept = state
                .streams
                .values_mut()
                .find(|kept| kept.spec.subjects.iter().any(|filter| matches(filter, &subject)))
                .ok_or_else(|| Error::Missing(format!("stream for subject {subject}")))?;
            kept.publish(publication)
        };
        self.changed.notify_waiters();
        // Nobody may be listening; that is what hints are like.
        let _ = self.published.send(subject);
        published
    }

    async fn send(&self, subject: &str, _message_id: &str, _payload: Bytes) -> Result<(), Error> {
        // Nobody may be listening; then nobody missed it.
        let _ = self.published.send(subject.to_owned());
        Ok(())
    }

    async fn last(&self, stream: StreamName, subject: &str) -> Result<Option<Stored>, Error> {
        Ok(self.lock().stream(stream)?.last(subject).cloned())
    }

    async fn next(
        &self,
        stream: StreamName,
        subject: &str,
        from: u64,
    ) -> Result<Option<Stored>, Error> {
        let mut state = self.lock();
        let mut messages = state.stream(stream)?.messages.range(from..);
        Ok(messages.find(|(_, message)| matches(subject, &message.subject)).map(|(_, m)| m.clone()))
    }

    async fn at(&self, stream: StreamName, sequence: u64) -> Result<Option<Stored>, Error> {
        Ok(self.lock().stream(stream)?.messages.get(&sequence).cloned())
    }

    async fn purge(&self, stream: StreamName, subject: &str) -> Result<(), Error> {
        self.lock()
            .stream(stream)?
            .messages
            .retain(|_, message| !matches(subject, &message.subject));
        Ok(())
    }

    async fn discard(&self, stream: StreamName, sequence: u64) -> Result<(), Error> {
        self.lock().stream(stream)?.messages.remove(&sequence);
        Ok(())
    }

    async fn room(&self, stream: StreamName) -> Result<Option<Room>, Error> {
        Ok(self.lock().stream(stream)?.room())
    }

    async fn ensure_consumer(&self, consumer: &ConsumerSpec) -> Result<(), Error> {
        self.lock().ensure(consumer);
        Ok(())
    }

    async fn consumers(&self, stream: StreamName) -> Result<Vec<String>, Error> {
        let state = self.lock();
        Ok(state.consumers.keys().filter(|key| key.0 == stream).map(|key| key.1.clone()).collect())
    }

    async fn lag(&self, consumer: &ConsumerSpec) -> Result<Lag, Error> {
        let state = self.lock();
        let key = (consumer.stream, consumer.name.clone());
        let missing = || Error::Missing(format!("consumer {}", consumer.name));
        let progress = state.consumers.get(&key).ok_or_else(missing)?;
        let messages = state.streams.get(&consumer.stream).into_iter().flat_map(|it| &it.messages);
        let before = messages.filter(|(sequence, message)| {
            let settled =
                **sequence <= progress.delivered && !progress.open.contains_key(*sequence);
            !settled && matches(&progress.filter, &message.subject)
        });
        let (messages, oldest) =
            before.fold((0, None), |(n, oldest), (_, it)| (n + 1, oldest.or(Some(it.at))));
        Ok(Lag { messages, oldest })
    }

    async fn deliveries(
        &self,
        consumer: &ConsumerSpec,
        ahead: usize,
    ) -> Result<BoxStream<'static, Result<Delivery, Error>>, Error> {
        let (broker, consumer) = (self.clone(), consumer.clone());
        let batches = stream::unfold((), move |()| {
            let (broker, consumer) = (broker.clone(), consumer.clone());
            async move {
                let turn = broker.queue_up(&consumer);
                loop {
                    let mut changed = std::pin::pin!(broker.changed.notified());
                    changed.as_mut().enable();
                    if !turn.has_come() {
                        changed.await;
                        continue;
                    }
                    let taken = broker.take(&consumer, ahead.max(1));
                    if !taken.is_empty() {
                        return Some((stream::iter(taken.into_iter().map(Ok)), ()));
                    }
                    broker.wait(&consumer, changed).await;
                }
            }
        });
        Ok(batches.flatten().boxed())
    }

    async fn fetch(&self, consumer: &ConsumerSpec, max: usize) -> Result<Vec<Delivery>, Error> {
        Ok(self.take(consumer, max))
    }

    async fn hints(&self, subject: &str) -> Result<BoxStream<'static, ()>, Error> {
        let filter = subject.to_owned();
        let receiver = self.published.subscribe();
        let hints = stream::unfold((receiver, filter), |(mut receiver, filter)| async move {
            loop {
                match receiver.recv().await {
                    Ok(subject) if !matches(&filter, &subject) => {}
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        return Some(((), (receiver, filter)));
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        });
        Ok(hints.boxed())
    }

    async fn get(&self, bucket: Bucket, key: &str) -> Result<Option<Entry>, Error> {
        Ok(self.lock().buckets.get(&(bucket, key.to_owned())).cloned())
    }

    async fn create(&self, bucket: Bucket, key: &str, value: Bytes) -> Result<Option<u64>, Error> {
        let mut state = self.lock();
        if state.buckets.contains_key(&(bucket, key.to_owned())) {
            return Ok(None);
        }
        Ok(Some(state.write(bucket, key, value)))
    }

    async fn update(
        &self,
        bucket: Bucket,
        key: &str,
        value: Bytes,
        revision: u64,
    ) -> Result<Option<u64>, Error> {
        let mut state = self.lock();
        let there = state.buckets.get(&(bucket, key.to_owned()));
        if there.is_none_or(|entry| entry.revision != revision) {
            return Ok(None);
        }
        Ok(Some(state.write(bucket, key, value)))
    }

    async fn remove(&self, bucket: Bucket, key: &str) -> Result<(), Error> {
        self.lock().buckets.remove(&(bucket, key.to_owned()));
        Ok(())
    }
}

impl State {
    fn write(&mut self, bucket: Bucket, key: &str, value: Bytes) -> u64 {
        self.revision += 1;
        let entry = Entry { value, revision: self.revision };
        self.buckets.insert((bucket, key.to_owned()), entry);
        self.revision
    }
}

struct MemorySettler {
    broker: Memory,
    consumer: (StreamName, String),
    sequence: u64,
}

#[async_trait]
impl Settler for MemorySettler {
    async fn settle(&self, settle: Settle) -> Result<(), Error> {
        let mut state = self.broker.lock();
        let Some(progress) = state.consumers.get_mut(&self.consumer) else { return Ok(()) };
        let again_at = match settle {
            Settle::Ack | Settle::Term => {
                progress.open.remove(&self.sequence);
                return Ok(());
            }
            Settle::Nak(after) => Instant::now() + after,
            Settle::Progress => Instant::now() + ACK_WAIT,
        };
        if let Some(open) = progress.open.get_mut(&self.sequence) {
            open.again_at = again_at;
        }
        drop(state);
        if settle != Settle::Progress {
            self.broker.changed.notify_waiters();
        }
        Ok(())
    }
}

/// Whether a subject falls under a filter; an empty filter takes everything.
fn matches(filter: &str, subject: &str) -> bool {
    if filter.is_empty() {
        return true;
    }
    let mut tokens = subject.split('.');
    for wanted in filter.split('.') {
        match (wanted, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests;
