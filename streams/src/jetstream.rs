//! The broker on a NATS server with JetStream. NATS types do not leave this module.

mod connect;
mod delivery;
mod ensure;
mod refusal;
mod service;

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, consumer, context, kv, stream};
use async_nats::{Client, HeaderMap, header};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, stream as streams_of};
use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::broker::{
    Broker, Delivery, Entry, Error, Expect, Lag, Publication, Published, Room, Stored,
};
use crate::topology::{Bucket, ConsumerSpec, Limits, StreamName};

pub(crate) use connect::inbox;
pub use connect::{Connect, Login};
pub use ensure::Drift;
pub use service::{Offer, Request, Service};

#[cfg(test)]
use connect::OLDEST_SERVER;
use refusal::Refusals;

/// How long a pull request waits at the server before it is renewed.
const PULL_EXPIRES: Duration = Duration::from_secs(30);

/// How long an answer to a pull request that does not wait may take. Without it a request that is
/// lost with its server would never end.
const FETCH_ANSWERS: Duration = Duration::from_secs(5);

/// The header of a trace context.
const TRACEPARENT: &str = "traceparent";

/// JetStream's code for "this subject's last message is another one".
const WRONG_LAST_SEQUENCE: u64 = 10071;
/// Its codes for "another message of this subject, or of this id, is being stored just now". That
/// one may yet fail with the leader that takes it: only asking again tells.
const IN_PROCESS: [u64; 2] = [10164, 10158];
/// Its status for all that passes by itself, as while servers have no leader.
const PASSING: usize = 503;
/// Its code for everything that its store refuses. Which limit struck is only in the words.
const STORE_REFUSES: u64 = 10077;
/// Its words for "this subject has its message already".
const MAX_PER_SUBJECT: &str = "maximum messages per subject exceeded";
/// Its words for a stream that is full.
const MAX_BYTES: &str = "maximum bytes exceeded";
/// Its code for an account or disk that is full.
const STORAGE_FULL: u64 = 10047;

/// What a consumer still has before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Messages that were never delivered.
    pub waiting: u64,
    /// Messages that were delivered and not settled.
    pub unsettled: u64,
}

/// A connection with everything the chain needs in place.
pub struct JetStream {
    client: Client,
    context: jetstream::Context,
    refusals: Refusals,
    buckets: HashMap<Bucket, kv::Store>,
    /// Handles of consumers that are known to exist; asking the server again costs a round trip.
    consumers: Mutex<HashMap<ConsumerSpec, consumer::PullConsumer>>,
}

impl JetStream {
    /// Connects, refuses a server that is too old, and makes what is missing. What exists with
    /// other settings is left alone and reported.
    pub async fn connect(to: &Connect, limits: Limits) -> Result<(Self, Vec<Drift>), Error> {
        let refusals = Refusals::of(to.login.as_ref().map(|login| login.user.as_str()));
        let client = connect::connect(to, &refusals).await?;
        let context = jetstream::new(client.clone());
        let (buckets, drift) = refusals.or(&[], ensure::topology(&context, limits)).await?;
        Ok((Self { client, context, refusals, buckets, consumers: Mutex::default() }, drift))
    }

    /// Waits until what was written is with the server.
    pub async fn flush(&self) -> Result<(), Error> {
        self.client.flush().await.map_err(unavailable)
    }

    async fn stream(&self, name: StreamName) -> Result<stream::Stream<()>, Error> {
        self.context.get_stream_no_info(name.as_str()).await.map_err(unavailable)
    }

    async fn consumer(&self, spec: &ConsumerSpec) -> Result<consumer::PullConsumer, Error> {
        let mut known = self.consumers.lock().await;
        if let Some(consumer) = known.get(spec) {
            return Ok(consumer.clone());
        }
        let made = ensure::consumer(&self.context, spec);
        let consumer = self.refusals.or(&consumer_calls(spec), made).await?;
        known.insert(spec.clone(), consumer.clone());
        Ok(consumer)
    }

    fn bucket(&self, bucket: Bucket) -> Result<&kv::Store, Error> {
        self.buckets.get(&bucket).ok_or_else(|| Error::Missing(format!("bucket {bucket:?}")))
    }
}

#[async_trait]
impl Broker for JetStream {
    async fn publish(&self, publication: Publication) -> Result<Published, Error> {
        let subject = publication.subject.clone();
        let mut message = PublishMessage::build().payload(publication.payload);
        if let Some(id) = &publication.message_id {
            message = message.message_id(id);
        }
        message = match publication.expect {
            Expect::Any => message,
            Expect::Empty => message.expected_last_subject_sequence(0),
            Expect::Last(sequence) => message.expected_last_subject_sequence(sequence),
        };
        if let Some(traceparent) = &publication.traceparent {
            message = message.header(TRACEPARENT, traceparent.as_str());
        }
        let confirmed = async {
            let confirmed = match self.context.send_publish(subject.clone(), message).await {
                Ok(confirmation) => confirmation.await,
                Err(error) => Err(error),
            };
            match confirmed {
                Ok(ack) if ack.duplicate => Ok(Published::Exists),
                Ok(ack) => Ok(Published::Stored(ack.sequence)),
                Err(error) => publish_failed(&subject, &error),
            }
        };
        self.refusals.or(std::slice::from_ref(&subject), confirmed).await
    }

    async fn send(&self, subject: &str, message_id: &str, payload: Bytes) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_MESSAGE_ID, message_id);
        let sent = async {
            let sent = self.client.publish_with_headers(subject.to_owned(), headers, payload).await;
            sent.map_err(unavailable)?;
            timeout(FETCH_ANSWERS, self.taken())
                .await
                .unwrap_or_else(|elapsed| Err(unavailable(elapsed)))
        };
        self.refusals.or(&[subject.to_owned()], sent).await
    }

    async fn last(&self, stream: StreamName, subject: &str) -> Result<Option<Stored>, Error> {
        let asks = [api("STREAM.MSG.GET", stream.as_str())];
        let stream = self.stream(stream).await?;
        let asked = async { found(stream.get_last_raw_message_by_subject(subject).await) };
        self.refusals.or(&asks, asked).await
    }

    async fn next(
        &self,
        stream: StreamName,
        subject: &str,
        from: u64,
    ) -> Result<Option<Stored>, Error> {
        let asks = [api("STREAM.MSG.GET", stream.as_str())];
        let stream = self.stream(stream).await?;
        let first = stream.get_first_raw_message_by_subject(subject, from.max(1));
        self.refusals.or(&asks, async { found(first.await) }).await
    }

    async fn at(&self, stream: StreamName, sequence: u64) -> Result<Option<Stored>, Error> {
        let asks = [api("STREAM.MSG.GET", stream.as_str())];
        let stream = self.stream(stream).await?;
        self.refusals.or(&asks, async { found(stream.get_raw_message(sequence).await) }).await
    }

    async fn purge(&self, stream: StreamName, subject: &str) -> Result<(), Error> {
        self.emptied(stream.as_str(), subject).await
    }

    async fn discard(&self, stream: StreamName, sequence: u64) -> Result<(), Error> {
        let asks = [api("STREAM.MSG.DELETE", stream.as_str())];
        let deleted = async {
            let deleted = self.stream(stream).await?.delete_message(sequence).await;
            deleted.map(drop).map_err(unavailable)
        };
        match self.refusals.or(&asks, deleted).await {
            // To the server it is an error that there is no such message.
            Err(Error::Unavailable(_)) if self.at(stream, sequence).await?.is_none() => Ok(()),
            done => done,
        }
    }

    async fn room(&self, stream: StreamName) -> Result<Option<Room>, Error> {
        let asks = [api("STREAM.INFO", stream.as_str())];
        let asked = async { self.context.get_stream(stream.as_str()).await.map_err(unavailable) };
        let stream = self.refusals.or(&asks, asked).await?;
        let info = stream.cached_info();
        let of = u64::try_from(info.config.max_bytes).ok().filter(|bytes| *bytes > 0);
        Ok(of.map(|of| Room { free: of.saturating_sub(info.state.bytes), of }))
    }

    async fn ensure_consumer(&self, consumer: &ConsumerSpec) -> Result<(), Error> {
        self.consumer(consumer).await.map(drop)
    }

    async fn consumers(&self, stream: StreamName) -> Result<Vec<String>, Error> {
        let names = self.stream(stream).await?.consumer_names();
        let asked = async { names.try_collect().await.map_err(unavailable) };
        let asks = [api("CONSUMER.NAMES", stream.as_str())];
        let names: Vec<String> = self.refusals.or(&asks, asked).await?;
        // One that somebody removed is made again by whoever asks for it.
        self.consumers.lock().await.retain(|it, _| it.stream != stream || names.contains(&it.name));
        Ok(names)
    }

    async fn lag(&self, spec: &ConsumerSpec) -> Result<Lag, Error> {
        let stream = self.stream(spec.stream).await?;
        let asked = async { stream.consumer_info(&spec.name).await.map_err(unavailable) };
        let info = self.refusals.or(&consumer_calls(spec), asked).await?;
        let messages = info.num_pending + info.num_ack_pending as u64;
        if messages == 0 {
            return Ok(Lag::default());
        }
        let filter = if spec.filter.is_empty() { ">" } else { &spec.filter };
        let oldest = self.next(spec.stream, filter, info.ack_floor.stream_sequence + 1).await?;
        Ok(Lag { messages, oldest: oldest.map(|stored| stored.at) })
    }

    async fn deliveries(
        &self,
        spec: &ConsumerSpec,
        ahead: usize,
    ) -> Result<BoxStream<'static, Result<Delivery, Error>>, Error> {
        let consumer = self.fresh(spec).await?;
        let messages = consumer
            .stream()
            .max_messages_per_batch(ahead)
            .expires(PULL_EXPIRES)
            .heartbeat(PULL_EXPIRES / 2)
            .messages()
            .await
            .map_err(unavailable)?;
        let messages = messages.map(|message| delivery::wrap(message.map_err(unavailable)?));
        let ended = streams_of::once(async { Err(unavailable("the deliveries ended")) });
        // The consumer itself would only miss the heartbeats of a pull that is refused.
        let refused = self.refusals.of_asking(consumer_calls(spec)).map(Err);
        Ok(streams_of::select(messages.chain(ended), refused).boxed())
    }

    async fn fetch(&self, spec: &ConsumerSpec, max: usize) -> Result<Vec<Delivery>, Error> {
        if max == 0 {
            // The server would take it for one.
            return Ok(Vec::new());
        }
        let consumer = self.consumer(spec).await?;
        let asked = async {
            let batch = consumer.fetch().max_messages(max).messages().await.map_err(unavailable)?;
            batch.try_collect::<Vec<_>>().await.map_err(unavailable)
        };
        let asks = consumer_calls(spec);
        let found = timeout(FETCH_ANSWERS, self.refusals.or(&asks, asked));
        let found = found.await.unwrap_or_else(|elapsed| Err(unavailable(elapsed)));
        if found.is_err() {
            // The consumer may have been removed: the next call makes it again.
            self.consumers.lock().await.remove(spec);
        }
        found?.into_iter().map(delivery::wrap).collect()
    }

    async fn hints(&self, subject: &str) -> Result<BoxStream<'static, ()>, Error> {
        let asked = async {
            let messages = self.client.subscribe(subject.to_owned()).await.map_err(unavailable)?;
            self.taken().await?;
            Ok(messages)
        };
        let messages = self.refusals.or(&[subject.to_owned()], asked).await?;
        Ok(messages.map(drop).boxed())
    }

    async fn get(&self, bucket: Bucket, key: &str) -> Result<Option<Entry>, Error> {
        let last = self.last_of_key(bucket, key).await?.filter(|message| !is_removal(message));
        Ok(last.map(|message| Entry { value: message.payload, revision: message.sequence }))
    }

    async fn create(&self, bucket: Bucket, key: &str, value: Bytes) -> Result<Option<u64>, Error> {
        // The store's own way says of a key of ours that it is there already, when only the word of
        // its creation was lost. Nobody could tell then who has it.
        if let Some(revision) = self.update(bucket, key, value.clone(), 0).await? {
            return Ok(Some(revision));
        }
        // Somebody's tool may have left a marker where a key was removed.
        match self.last_of_key(bucket, key).await?.filter(is_removal) {
            Some(marker) => self.update(bucket, key, value, marker.sequence).await,
            None => Ok(None),
        }
    }

    async fn update(
        &self,
        bucket: Bucket,
        key: &str,
        value: Bytes,
        revision: u64,
    ) -> Result<Option<u64>, Error> {
        let store = self.bucket(bucket)?;
        let asked = async {
            match store.update(key, value, revision).await {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(unavailable(error)),
            }
        };
        self.refusals.or(&[key_subject(bucket, key)], asked).await
    }

    async fn remove(&self, bucket: Bucket, key: &str) -> Result<(), Error> {
        // The store's own purge leaves a marker behind, for every key and for ever.
        self.emptied(&format!("KV_{}", bucket.as_str()), &key_subject(bucket, key)).await
    }
}

impl JetStream {
    /// What was written last for a key, a marker of its removal included. The store's own way to read
    /// asks whichever server is next, as all direct reads do.
    async fn last_of_key(
        &self,
        bucket: Bucket,
        key: &str,
    ) -> Result<Option<jetstream::message::StreamMessage>, Error> {
        let name = format!("KV_{}", bucket.as_str());
        let stream = self.context.get_stream_no_info(&name).await.map_err(unavailable)?;
        let subject = key_subject(bucket, key);
        let asked = async { read(stream.get_last_raw_message_by_subject(&subject).await) };
        self.refusals.or(&[api("STREAM.MSG.GET", &name)], asked).await
    }

    /// Removes a durable consumer; whoever reads it makes it anew and is given everything again.
    pub async fn remove_consumer(&self, spec: &ConsumerSpec) -> Result<(), Error> {
        self.consumers.lock().await.remove(spec);
        let stream = self.stream(spec.stream).await?;
        stream.delete_consumer(&spec.name).await.map(drop).map_err(unavailable)
    }

    /// What a consumer still has before it; `None` when it does not exist.
    pub async fn backlog(&self, spec: &ConsumerSpec) -> Result<Option<Backlog>, Error> {
        let stream = self.stream(spec.stream).await?;
        match stream.consumer_info(&spec.name).await {
            Ok(info) => {
                let unsettled = info.num_ack_pending as u64;
                Ok(Some(Backlog { waiting: info.num_pending, unsettled }))
            }
            Err(error) if error.kind() == context::ConsumerInfoErrorKind::NotFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Removes every message of a subject.
    async fn emptied(&self, stream: &str, subject: &str) -> Result<(), Error> {
        let asks = [api("STREAM.PURGE", stream)];
        let stream = self.context.get_stream_no_info(stream).await.map_err(unavailable)?;
        let purged = async { stream.purge().filter(subject).await.map(drop).map_err(unavailable) };
        self.refusals.or(&asks, purged).await
    }

    /// Waits until the server has what was sent. To a user, who may lack a permission, it has by
    /// the second answer said so: who hears the word is another task than who hears the first.
    async fn taken(&self) -> Result<(), Error> {
        self.flush().await?;
        for _ in 0..if self.refusals.are_of_a_user() { 2 } else { 0 } {
            self.room(StreamName::Refused).await?;
        }
        Ok(())
    }

    /// A consumer that is looked up again: the one remembered may have been removed.
    async fn fresh(&self, spec: &ConsumerSpec) -> Result<consumer::PullConsumer, Error> {
        self.consumers.lock().await.remove(spec);
        self.consumer(spec).await
    }
}

/// A subject of the server's own.
fn api(call: &str, of: &str) -> String {
    format!("$JS.API.{call}.{of}")
}

/// Those on which a consumer is found, made and read.
fn consumer_calls(spec: &ConsumerSpec) -> Vec<String> {
    let of = format!("{}.{}", spec.stream.as_str(), spec.name);
    let calls = ["CONSUMER.INFO", "CONSUMER.CREATE", "CONSUMER.DELETE", "CONSUMER.MSG.NEXT"];
    calls.map(|call| api(call, &of)).to_vec()
}

fn key_subject(bucket: Bucket, key: &str) -> String {
    format!("$KV.{}.{key}", bucket.as_str())
}

/// Tells "it stands already" from a failure.
fn publish_failed(subject: &str, error: &context::PublishError) -> Result<Published, Error> {
    use context::PublishErrorKind::{MaxPayloadExceeded, StreamNotFound};
    let server = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<jetstream::Error>());
    match (error.kind(), server) {
        (StreamNotFound, _) => Err(Error::Missing(format!("stream for subject {subject}"))),
        (MaxPayloadExceeded, _) => Err(Error::Refused {
            what: format!("a message on {subject}"),
            reason: error.to_string(),
        }),
        (_, Some(server)) => {
            let (code, words) = (server.error_code().0, server.to_string());
            let store_says = |limit| code == STORE_REFUSES && words.contains(limit);
            if code == WRONG_LAST_SEQUENCE || store_says(MAX_PER_SUBJECT) {
                return Ok(Published::Exists);
            }
            if code == STORAGE_FULL || store_says(MAX_BYTES) {
                return Err(Error::Full(format!("of subject {subject}")));
            }
            if IN_PROCESS.contains(&code) || server.code() == PASSING {
                return Err(Error::Unavailable(words));
            }
            Err(Error::Refused { what: format!("a message on {subject}"), reason: words })
        }
        _ => Err(Error::Unavailable(error.to_string())),
    }
}

/// What a stream's leader answered. Nothing is read directly from whichever server has a copy: in
/// a cluster one that is behind would not know of what was confirmed to us before.
fn read(
    answer: Result<jetstream::message::StreamMessage, stream::RawMessageError>,
) -> Result<Option<jetstream::message::StreamMessage>, Error> {
    match answer {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == stream::RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(unavailable(error)),
    }
}

fn found(
    answer: Result<jetstream::message::StreamMessage, stream::RawMessageError>,
) -> Result<Option<Stored>, Error> {
    Ok(read(answer)?.map(stored))
}

/// Whether a key's last message says that somebody has removed the key.
fn is_removal(message: &jetstream::message::StreamMessage) -> bool {
    message.headers.get("KV-Operation").is_some()
        || message.headers.get(header::NATS_MARKER_REASON).is_some()
}

fn stored(message: jetstream::message::StreamMessage) -> Stored {
    Stored {
        subject: message.subject.to_string(),
        sequence: message.sequence,
        at: timestamp(message.time),
        traceparent: traceparent(&message.headers),
        payload: message.payload,
    }
}

/// The header of a trace context.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    headers.get(TRACEPARENT).map(|value| value.as_str().to_owned())
}

/// The server's nanoseconds, cut to the microseconds that the platform uses everywhere.
fn timestamp(time: async_nats::datetime::DateTime) -> Timestamp {
    let microseconds = time.unix_timestamp_nanos() / 1_000;
    i64::try_from(microseconds)
        .ok()
        .and_then(|us| Timestamp::from_microsecond(us).ok())
        .unwrap_or_default()
}

fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests;
