//! What every broker must do: one suite, run on the broker in memory and on a real server.
//!
//! Each case has workspaces, jobs and consumers of its own, so that all can share one broker.

mod consuming;
mod keys;
mod publishing;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::{Instant, sleep, timeout};

use super::{Broker, Delivery, Error, Expect, Publication, Published};
use crate::id::JobId;
use crate::phase::Phase;
use crate::subject;
use crate::topology::{ConsumerSpec, StreamName};

/// Far beyond anything that should happen, and below the server's wait for a word on a delivery:
/// what comes in time was not brought by that wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a message is put off where the suite wants to see that it waits.
const LATER: Duration = Duration::from_millis(300);

/// The broker under test, and what only an operator can do to it.
#[async_trait]
pub(crate) trait Rig: Send + Sync {
    /// The broker.
    fn broker(&self) -> Arc<dyn Broker>;

    /// Another one, whose `INTAKE` holds four kilobytes.
    fn small_intake(&self) -> Arc<dyn Broker>;

    /// Removes a consumer behind the broker's back.
    async fn delete_consumer(&self, consumer: &ConsumerSpec);
}

/// Bytes that fit in [`Rig::small_intake`].
pub(crate) const SMALL_INTAKE_BYTES: u64 = 4096;

/// Runs every case.
pub(crate) async fn exercise(rig: &dyn Rig) {
    let broker = &*rig.broker();

    publishing::a_first_fact_is_stored(broker).await;
    publishing::a_second_fact_on_a_subject_is_refused(broker).await;
    publishing::a_message_id_is_stored_once(broker).await;
    publishing::the_last_sequence_is_compared(broker).await;
    publishing::one_of_many_publishers_wins(broker).await;
    publishing::a_subject_is_read_message_by_message(broker).await;
    publishing::status_keeps_the_last_sixteen(broker).await;
    publishing::a_discarded_message_is_gone_and_makes_room(broker).await;
    publishing::a_purged_subject_is_empty(broker).await;
    publishing::a_subject_that_nobody_keeps_is_missing(broker).await;
    publishing::a_full_intake_refuses_and_jobs_go_on(&*rig.small_intake()).await;
    publishing::hints_come_for_their_subject(broker).await;
    publishing::what_is_sent_is_heard(broker).await;

    consuming::fetch_takes_what_is_there_and_does_not_wait(broker).await;
    consuming::a_nak_comes_back_after_its_delay(broker).await;
    consuming::acknowledged_and_terminated_never_come_back(broker).await;
    consuming::a_dropped_delivery_comes_back_soon(broker).await;
    consuming::progress_keeps_a_delivery_away(broker).await;
    consuming::a_stream_gets_later_messages(broker).await;
    consuming::purged_messages_are_not_delivered(broker).await;
    consuming::a_recreated_consumer_delivers_old_messages_as_new(rig).await;
    consuming::a_stream_whose_consumer_is_removed_can_be_asked_again(rig).await;
    consuming::consumers_are_listed(broker).await;
    consuming::a_lag_is_what_is_not_settled(broker).await;
    consuming::a_workspace_sees_only_its_own(broker).await;

    keys::a_key_is_created_once(broker).await;
    keys::one_of_many_creators_wins(broker).await;
    keys::an_update_needs_the_revision(broker).await;
    keys::a_removed_key_can_be_created_again(broker).await;
}

/// A publication without header and expectation.
fn plain(subject: &str, text: &str) -> Publication {
    Publication {
        subject: subject.to_owned(),
        payload: text.to_owned().into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    }
}

/// A fact as the runtime publishes it.
fn fact(phase: Phase, workspace: &str, job: JobId) -> Publication {
    Publication {
        message_id: Some(job.message_id(phase)),
        expect: Expect::Empty,
        ..plain(&subject::fact(phase, workspace, job), &format!("{phase} of {job}"))
    }
}

/// Publishes what must be stored, and returns its sequence.
async fn store(broker: &dyn Broker, publication: Publication) -> u64 {
    match broker.publish(publication.clone()).await {
        Ok(Published::Stored(sequence)) => sequence,
        other => panic!("{publication:?} was not stored: {other:?}"),
    }
}

/// Publishes the `resolved` facts of so many new jobs; returns their subjects.
async fn store_resolved(broker: &dyn Broker, workspace: &str, count: usize) -> Vec<String> {
    let mut subjects = Vec::new();
    for _ in 0..count {
        let fact = fact(Phase::Resolved, workspace, JobId::new());
        subjects.push(fact.subject.clone());
        store(broker, fact).await;
    }
    subjects
}

/// A consumer of the `resolved` facts of one workspace.
fn consumer(workspace: &str) -> ConsumerSpec {
    ConsumerSpec {
        stream: StreamName::Jobs,
        name: format!("suite_{workspace}"),
        filter: subject::facts_in(Phase::Resolved, workspace),
    }
}

/// Asks until a delivery is there, again after an error too, as workers do.
async fn arrival(broker: &dyn Broker, consumer: &ConsumerSpec) -> Delivery {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let fetched = broker.fetch(consumer, 1).await;
        if let Ok(mut deliveries) = fetched {
            if let Some(delivery) = deliveries.pop() {
                return delivery;
            }
        } else if Instant::now() > deadline {
            panic!("consumer {} cannot be asked: {fetched:?}", consumer.name);
        }
        assert!(Instant::now() < deadline, "consumer {} gets nothing", consumer.name);
        sleep(Duration::from_millis(10)).await;
    }
}

/// So many of them. What was stored a moment ago may not be there at the first look.
async fn arrivals(broker: &dyn Broker, consumer: &ConsumerSpec, count: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for _ in 0..count {
        deliveries.push(arrival(broker, consumer).await);
    }
    deliveries
}

/// The next item of a stream of deliveries.
async fn upcoming(
    deliveries: &mut BoxStream<'static, Result<Delivery, Error>>,
) -> Option<Result<Delivery, Error>> {
    timeout(PATIENCE, deliveries.next()).await.expect("the stream says something in time")
}
