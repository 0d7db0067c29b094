//! The broker: what the rest of the platform asks of the queue. Two forms stand behind the
//! trait, [`crate::jetstream`] and [`crate::memory`], held together by one conformance suite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use jiff::Timestamp;

use crate::topology::{Bucket, ConsumerSpec, StreamName};

/// What a publisher expects of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// That it is empty.
    Empty,
    /// That its last message has this sequence in the stream.
    Last(u64),
}

/// A message to be stored.
#[derive(Clone, Debug)]
pub struct Publication {
    /// Its subject.
    pub subject: String,
    /// Its bytes.
    pub payload: Bytes,
    /// Names the message; a second one of the same name within the server's window is dropped.
    pub message_id: Option<String>,
    /// What must hold for it to be stored.
    pub expect: Expect,
    /// W3C trace context, sent as a header too.
    pub traceparent: Option<String>,
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is stored under this sequence.
    Stored(u64),
    /// What it says stands already, or the expectation did not hold: it was not stored.
    Exists,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its subject.
    pub subject: String,
    /// Its sequence in the stream.
    pub sequence: u64,
    /// Its bytes.
    pub payload: Bytes,
    /// When the server stored it.
    pub at: Timestamp,
    /// Its header `traceparent`, whatever it says.
    pub traceparent: Option<String>,
}

/// A value in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its bytes.
    pub value: Bytes,
    /// Its revision, for [`Broker::update`].
    pub revision: u64,
}

/// What a stream with a limit may still take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// As much.
    pub free: u64,
    /// Of as much in all.
    pub of: u64,
}

/// What a durable consumer has before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Messages that are not settled, delivered or not.
    pub messages: u64,
    /// When the oldest of them was stored, or one before it.
    pub oldest: Option<Timestamp>,
}

/// Why the broker did not do it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be reached, or did not answer in time. The message may be stored nevertheless.
    #[error("nats is not reachable: {0}")]
    Unavailable(String),
    /// The stream is full and refuses new messages.
    #[error("stream {0} is full")]
    Full(String),
    /// Nobody keeps this subject, or the stream or consumer does not exist.
    #[error("nats knows no {0}")]
    Missing(String),
    /// The server refused it.
    #[error("nats refused {what}: {reason}")]
    Refused {
        /// What was asked.
        what: String,
        /// Its words.
        reason: String,
    },
}

/// What the platform asks of the queue.
#[async_trait]
pub trait Broker: Send + Sync + 'static {
    /// Stores a message and waits until the server has confirmed it.
    async fn publish(&self, publication: Publication) -> Result<Published, Error>;

    /// Sends a message that is no part of the chain to whoever listens to its subject, and waits
    /// until the server has it. A stream of somebody else's that keeps the subject sees the id.
    async fn send(&self, subject: &str, message_id: &str, payload: Bytes) -> Result<(), Error>;

    /// The last message on a subject, as the stream's leader has it.
    async fn last(&self, stream: StreamName, subject: &str) -> Result<Option<Stored>, Error>;

    /// The first message on a subject (wildcards allowed) at or after a sequence.
    async fn next(
        &self,
        stream: StreamName,
        subject: &str,
        from: u64,
    ) -> Result<Option<Stored>, Error>;

    /// The message with a sequence.
    async fn at(&self, stream: StreamName, sequence: u64) -> Result<Option<Stored>, Error>;

    /// Removes every message on a subject.
    async fn purge(&self, stream: StreamName, subject: &str) -> Result<(), Error>;

    /// Removes one message, if it is there.
    async fn discard(&self, stream: StreamName, sequence: u64) -> Result<(), Error>;

    /// What a stream may still take; `None` where it has no limit.
    async fn room(&self, stream: StreamName) -> Result<Option<Room>, Error>;

    /// Makes a durable consumer unless it exists.
    async fn ensure_consumer(&self, consumer: &ConsumerSpec) -> Result<(), Error>;

    /// The names of a stream's durable consumers.
    async fn consumers(&self, stream: StreamName) -> Result<Vec<String>, Error>;

    /// What a durable consumer has before it.
    async fn lag(&self, consumer: &ConsumerSpec) -> Result<Lag, Error>;

    /// Deliveries of a durable consumer as they come, at most `ahead` of them not yet taken.
    /// Ends only with an error; the caller asks again.
    async fn deliveries(
        &self,
        consumer: &ConsumerSpec,
        ahead: usize,
    ) -> Result<BoxStream<'static, Result<Delivery, Error>>, Error>;

    /// At most `max` deliveries that are there now; does not wait for more.
    async fn fetch(&self, consumer: &ConsumerSpec, max: usize) -> Result<Vec<Delivery>, Error>;

    /// A hint each time that something is published to a subject (wildcards allowed). Hints
    /// may be lost: look for yourself now and then.
    async fn hints(&self, subject: &str) -> Result<BoxStream<'static, ()>, Error>;

    /// Reads a key.
    async fn get(&self, bucket: Bucket, key: &str) -> Result<Option<Entry>, Error>;

    /// Writes a key that does not exist; `None` when it does.
    async fn create(&self, bucket: Bucket, key: &str, value: Bytes) -> Result<Option<u64>, Error>;

    /// Writes a key that still has the revision; `None` when it has another.
    async fn update(
        &self,
        bucket: Bucket,
        key: &str,
        value: Bytes,
        revision: u64,
    ) -> Result<Option<u64>, Error>;

    /// Removes a key.
    async fn remove(&self, bucket: Bucket, key: &str) -> Result<(), Error>;
}

/// What to tell the server about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// It is dealt with; never again.
    Ack,
    /// Again, not before this time has passed.
    Nak(Duration),
    /// It can never be dealt with; never again.
    Term,
    /// Still at it: do not deliver it to anybody else.
    Progress,
}

/// Tells the server what became of a delivery.
#[async_trait]
pub trait Settler: Send + Sync {
    /// Sends the word; `Ack` and `Term` wait for the server's confirmation.
    async fn settle(&self, settle: Settle) -> Result<(), Error>;
}

/// A delivery that was dropped comes back after this: a panic that repeats must not go round at
/// full speed.
const DROPPED: Duration = Duration::from_millis(500);

/// One arrival of a message at a consumer, maybe not the first.
///
/// A delivery that is dropped without having been settled is given back soon, so a panic or an
/// early return loses nothing.
pub struct Delivery {
    /// The message.
    pub message: Stored,
    /// How often it was delivered, this time included, since the consumer was created.
    pub times: u64,
    settler: Option<Arc<dyn Settler>>,
}

impl Delivery {
    /// Wraps a message that arrived.
    pub fn new(message: Stored, times: u64, settler: Arc<dyn Settler>) -> Self {
        Self { message, times, settler: Some(settler) }
    }

    /// Wraps a message that somebody has read and that was not delivered: there is nothing to say
    /// about it to the server.
    pub fn found(message: Stored) -> Self {
        Self { message, times: 1, settler: None }
    }

    /// Says that it is dealt with and waits for the server to confirm.
    pub async fn ack(self) -> Result<(), Error> {
        self.settle(Settle::Ack).await
    }

    /// Gives it back for later.
    pub async fn nak(self, after: Duration) -> Result<(), Error> {
        self.settle(Settle::Nak(after)).await
    }

    /// Says that nobody can deal with it.
    pub async fn term(self) -> Result<(), Error> {
        self.settle(Settle::Term).await
    }

    /// What can report progress while the work is done elsewhere.
    pub fn settler(&self) -> Option<Arc<dyn Settler>> {
        self.settler.clone()
    }

    /// The same delivery, of which the server is told by way of somebody between.
    pub fn settled_by(mut self, by: impl FnOnce(Arc<dyn Settler>) -> Arc<dyn Settler>) -> Self {
        self.settler = self.settler.take().map(by);
        self
    }

    async fn settle(mut self, settle: Settle) -> Result<(), Error> {
        match self.settler.take() {
            Some(settler) => settler.settle(settle).await,
            None => Ok(()),
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let Some(settler) = self.settler.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // A lost word is made good by the server's own wait.
            let _ = settler.settle(Settle::Nak(DROPPED)).await;
        });
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("subject", &self.message.subject)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod conformance;
