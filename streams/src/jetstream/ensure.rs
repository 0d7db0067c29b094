//! Applies the topology: makes what is missing, reports what differs, changes nothing.

use std::collections::HashMap;
use std::fmt;

use async_nats::jetstream::{Context, consumer, context, kv, stream};

use super::unavailable;
use crate::broker::Error;
use crate::topology::{
    ACK_WAIT, Bucket, ConsumerSpec, DUPLICATE_WINDOW, Full, Limits, StreamSpec, shared_consumers,
    streams,
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
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, setting, found, wanted } = self;
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
        drift.extend(stream_drift(&wanted, &stream.cached_info().config));
    }
    for spec in shared_consumers() {
        let consumer = self::consumer(context, &spec).await?;
        let found = &consumer.cached_info().config;
        drift.extend(consumer_drift(&spec, found));
    }
    let mut buckets = HashMap::new();
    for bucket in Bucket::ALL {
        let store = self::bucket(context, bucket, limits).await?;
        let found = store.status().await.map_err(unavailable)?;
        drift.extend(compare(
            &format!("bucket {}", bucket.as_str()),
            "history",
            &found.history(),
            &BUCKET_HISTORY,
        ));
        buckets.insert(bucket, store);
    }
    Ok((buckets, drift))
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

/// Gets the durable consumer, or makes it.
pub(super) async fn consumer(
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

fn stream_drift(wanted: &stream::Config, found: &stream::Config) -> Vec<Drift> {
    let what = format!("stream {}", wanted.name);
    compare(&what, "subjects", &found.subjects, &wanted.subjects)
        .into_iter()
        .chain(compare(
            &what,
            "max_msgs_per_subject",
            &found.max_messages_per_subject,
            &wanted.max_messages_per_subject,
        ))
        .chain(compare(
            &what,
            "discard_new_per_subject",
            &found.discard_new_per_subject,
            &wanted.discard_new_per_subject,
        ))
        .chain(compare(&what, "discard", &found.discard, &wanted.discard))
        .chain(compare(&what, "retention", &found.retention, &wanted.retention))
        .chain(compare(&what, "max_bytes", &found.max_bytes, &wanted.max_bytes))
        .chain(compare(&what, "max_age", &found.max_age, &wanted.max_age))
        .chain(compare(&what, "num_replicas", &found.num_replicas, &wanted.num_replicas))
        .collect()
}

fn consumer_drift(spec: &ConsumerSpec, found: &consumer::Config) -> Vec<Drift> {
    let what = format!("consumer {} of {}", spec.name, spec.stream.as_str());
    compare(&what, "filter_subject", &found.filter_subject, &spec.filter)
        .into_iter()
        .chain(compare(&what, "ack_wait", &found.ack_wait, &ACK_WAIT))
        .chain(compare(&what, "max_deliver", &found.max_deliver, &-1))
        .chain(compare(&what, "backoff", &found.backoff, &Vec::new()))
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
    })
}
