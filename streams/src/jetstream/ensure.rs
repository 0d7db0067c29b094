//! Applies the topology: makes what is missing and reports what differs. Streams and buckets are
//! left as they are: what is in them could be lost. Consumers hold nothing but who was given what:
//! one with other settings is made anew by whoever reads it, and everything is delivered again.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use async_nats::jetstream::{Context, ErrorCode, consumer, context, kv, stream};
use futures_util::TryStreamExt;

use super::unavailable;
use crate::broker::Error;
use crate::phase::{Phase, StepName};
use crate::topology::{
    ACK_WAIT, Bucket, ConsumerSpec, DUPLICATE_WINDOW, Full, Limits, StreamName, StreamSpec,
    scope_of, shared_consumers, step_consumer, streams,
};

/// Deliveries of one consumer that may be unsettled at once, over all workers.
const MAX_ACK_PENDING: i64 = 10_000;

/// Values of a key that are kept: only the last counts.
const BUCKET_HISTORY: i64 = 1;

/// A setting on the server that is not the one we would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The stream or consumer.
    pub what: String,
    /// The setting.
    pub setting: &'static str,
    /// Its value there.
    pub found: String,
    /// The value that we would give it.
    pub wanted: String,
    /// Whether jobs could be lost or run twice with it, and nobody mends it by himself.
    pub is_grave: bool,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, setting, found, wanted, .. } = self;
        write!(f, "{what} has {setting} = {found}, expected {wanted}")
    }
}

pub(super) async fn topology(
    context: &Context,
    limits: Limits,
) -> Result<(HashMap<Bucket, kv::Store>, Vec<Drift>), Error> {
    let mut drift = Vec::new();
    for spec in streams(limits) {
        let wanted = stream_config(&spec, limits);
        let stream = context.get_or_create_stream(wanted.clone()).await.map_err(unavailable)?;
        let found = sent_on(context, &wanted, &stream.cached_info().config).await;
        drift.extend(stream_drift(spec.name, &wanted, &found));
    }
    for spec in shared_consumers() {
        let consumer = found_or_made(context, &spec).await?;
        drift.extend(consumer_drift(&spec, &consumer.cached_info().config));
    }
    drift.extend(workspaces_drift(context).await?);
    let mut buckets = HashMap::new();
    for bucket in Bucket::ALL {
        let store = self::bucket(context, bucket, limits).await?;
        let found = store.status().await.map_err(unavailable)?;
        let what = format!("bucket {}", bucket.as_str());
        drift.extend(compare(&what, "history", &found.history(), &BUCKET_HISTORY));
        let max_age = compare(&what, "max_age", &found.max_age(), &Duration::ZERO);
        drift.extend(max_age.map(|drift| Drift { is_grave: true, ..drift }));
        buckets.insert(bucket, store);
    }
    Ok((buckets, drift))
}

/// The settings of a stream, once it sends on what it keeps. One that was made before there was
/// such a thing loses nothing by it. Where that is refused, it stays as it is and is reported.
async fn sent_on(
    context: &Context,
    wanted: &stream::Config,
    found: &stream::Config,
) -> stream::Config {
    if wanted.republish.is_none() || found.republish.is_some() {
        return found.clone();
    }
    let change = stream::Config { republish: wanted.republish.clone(), ..found.clone() };
    match context.update_stream(&change).await {
        Ok(info) => info.config,
        Err(error) => {
            tracing::warn!(stream = found.name, %error, "could not make a stream send on");
            found.clone()
        }
    }
}

/// How the consumers of workspaces differ. They are made when they are needed.
async fn workspaces_drift(context: &Context) -> Result<Vec<Drift>, Error> {
    let step = StepName::Invoke;
    let stream = StreamName::of(step.consumes());
    let stream = context.get_stream_no_info(stream.as_str()).await.map_err(unavailable)?;
    let mut consumers = stream.consumers();
    let mut drift = Vec::new();
    while let Some(found) = consumers.try_next().await.map_err(unavailable)? {
        if let Some(workspace) = scope_of(step, &found.name) {
            drift.extend(consumer_drift(&step_consumer(step, &workspace), &found.config));
        }
    }
    Ok(drift)
}

/// Gets the bucket, or makes it.
async fn bucket(context: &Context, bucket: Bucket, limits: Limits) -> Result<kv::Store, Error> {
    use context::KeyValueErrorKind::GetBucket;
    match context.get_key_value(bucket.as_str()).await {
        Err(error) if error.kind() == GetBucket => {}
        found => return found.map_err(unavailable),
    }
    // Two programs that start at once both get here; the same settings twice are no error.
    let config = kv::Config {
        bucket: bucket.as_str().to_owned(),
        history: BUCKET_HISTORY,
        num_replicas: usize::from(limits.replicas),
        ..Default::default()
    };
    context.create_key_value(config).await.map_err(unavailable)
}

/// Gets the durable consumer, or makes it: also in the place of one with other settings. One that
/// gave up on a message, or gives it to others too early, is not merely changed: it would not give
/// again what it gave up.
pub(super) async fn consumer(
    context: &Context,
    spec: &ConsumerSpec,
) -> Result<consumer::PullConsumer, Error> {
    let found = found_or_made(context, spec).await?;
    let drift = consumer_drift(spec, &found.cached_info().config);
    if drift.is_empty() {
        return Ok(found);
    }
    for drift in drift {
        tracing::warn!(%drift, "a consumer with other settings is made anew");
    }
    let stream = spec.stream.as_str();
    // Another worker may be faster: what it made is then removed once more.
    match context.delete_consumer_from_stream(&spec.name, stream).await {
        Err(error) if !is_gone(&error.kind()) => return Err(unavailable(error)),
        _ => {}
    }
    found_or_made(context, spec).await
}

fn is_gone(error: &stream::ConsumerErrorKind) -> bool {
    let stream::ConsumerErrorKind::JetStream(error) = error else { return false };
    error.error_code() == ErrorCode::CONSUMER_NOT_FOUND
}

async fn found_or_made(
    context: &Context,
    spec: &ConsumerSpec,
) -> Result<consumer::PullConsumer, Error> {
    let stream = context.get_stream_no_info(spec.stream.as_str()).await.map_err(unavailable)?;
    stream.get_or_create_consumer(&spec.name, consumer_config(spec)).await.map_err(unavailable)
}

fn stream_config(spec: &StreamSpec, limits: Limits) -> stream::Config {
    stream::Config {
        name: spec.name.as_str().to_owned(),
        description: Some(spec.meaning.to_owned()),
        subjects: spec.subjects.clone(),
        retention: stream::RetentionPolicy::Limits,
        storage: stream::StorageType::File,
        max_messages_per_subject: if spec.per_subject == 0 { -1 } else { spec.per_subject.into() },
        discard_new_per_subject: spec.refuse_second,
        max_messages: -1,
        max_bytes: if spec.max_bytes == 0 { -1 } else { spec.max_bytes.try_into().unwrap_or(-1) },
        discard: match spec.full {
            Full::RefuseNew => stream::DiscardPolicy::New,
            Full::DropOldest => stream::DiscardPolicy::Old,
        },
        duplicate_window: DUPLICATE_WINDOW,
        republish: spec.sent_on.map(|(source, destination)| stream::Republish {
            source: source.to_owned(),
            destination: destination.to_owned(),
            headers_only: false,
        }),
        allow_direct: true,
        num_replicas: usize::from(limits.replicas),
        ..Default::default()
    }
}

fn consumer_config(spec: &ConsumerSpec) -> consumer::pull::Config {
    consumer::pull::Config {
        durable_name: Some(spec.name.clone()),
        deliver_policy: consumer::DeliverPolicy::All,
        ack_policy: consumer::AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_deliver: -1,
        max_ack_pending: MAX_ACK_PENDING,
        filter_subject: spec.filter.clone(),
        ..Default::default()
    }
}

/// How a stream differs. That a fact is kept, and no second one beside it, hangs on its stream's
/// settings; how large it may get and how often it is kept is its owner's to say.
fn stream_drift(name: StreamName, wanted: &stream::Config, found: &stream::Config) -> Vec<Drift> {
    let what = format!("stream {}", wanted.name);
    let keeps_facts = Phase::CHAIN.into_iter().any(|phase| StreamName::of(phase) == name);
    let per_subject = (found.max_messages_per_subject, wanted.max_messages_per_subject);
    let refuses = (found.discard_new_per_subject, wanted.discard_new_per_subject);
    let grave = [
        compare(&what, "subjects", &found.subjects, &wanted.subjects),
        compare(&what, "max_msgs_per_subject", &per_subject.0, &per_subject.1),
        compare(&what, "discard_new_per_subject", &refuses.0, &refuses.1),
        compare(&what, "discard", &found.discard, &wanted.discard),
        compare(&what, "retention", &found.retention, &wanted.retention),
        compare(&what, "storage", &found.storage, &wanted.storage),
        compare(&what, "max_age", &found.max_age, &wanted.max_age),
    ];
    let others = [
        compare(&what, "max_bytes", &found.max_bytes, &wanted.max_bytes),
        compare(&what, "num_replicas", &found.num_replicas, &wanted.num_replicas),
        compare(&what, "republish", &found.republish, &wanted.republish),
    ];
    let grave = grave.into_iter().flatten().map(|it| Drift { is_grave: keeps_facts, ..it });
    grave.chain(others.into_iter().flatten()).collect()
}

fn consumer_drift(spec: &ConsumerSpec, found: &consumer::Config) -> Vec<Drift> {
    let what = format!("consumer {} of {}", spec.name, spec.stream.as_str());
    let wanted = consumer_config(spec);
    let pending = (found.max_ack_pending, wanted.max_ack_pending);
    [
        compare(&what, "filter_subject", &found.filter_subject, &wanted.filter_subject),
        compare(&what, "deliver_policy", &found.deliver_policy, &wanted.deliver_policy),
        compare(&what, "ack_policy", &found.ack_policy, &wanted.ack_policy),
        compare(&what, "ack_wait", &found.ack_wait, &wanted.ack_wait),
        compare(&what, "max_deliver", &found.max_deliver, &wanted.max_deliver),
        compare(&what, "max_ack_pending", &pending.0, &pending.1),
        compare(&what, "backoff", &found.backoff, &wanted.backoff),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn compare<T: PartialEq + fmt::Debug>(
    what: &str,
    setting: &'static str,
    found: &T,
    wanted: &T,
) -> Option<Drift> {
    (found != wanted).then(|| Drift {
        what: what.to_owned(),
        setting,
        found: format!("{found:?}"),
        wanted: format!("{wanted:?}"),
        is_grave: false,
    })
}
