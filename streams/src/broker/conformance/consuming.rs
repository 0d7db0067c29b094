//! Deliveries: when they come, when they come again, and who gets them.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep};

use super::{
    LATER, PATIENCE, Rig, arrival, arrivals, consumer, fact, store, store_resolved, upcoming,
};
use crate::broker::{Broker, Delivery, Lag, Settle};
use crate::id::JobId;
use crate::phase::{Phase, StepName};
use crate::topology::{StreamName, scope_of, shared_consumers, step_consumer};

/// Settles without giving the delivery away, as the runtime's keepalive does.
async fn say(delivery: &Delivery, settle: Settle) {
    let settler = delivery.settler().expect("not settled yet");
    settler.settle(settle).await.expect("the server hears it");
}

pub(super) async fn fetch_takes_what_is_there_and_does_not_wait(broker: &dyn Broker) {
    let consumer = consumer("fetch");
    let asked = Instant::now();
    let nothing = broker.fetch(&consumer, 5).await.expect("the consumer is made");
    assert!(nothing.is_empty());
    assert!(asked.elapsed() < PATIENCE / 2, "fetch waited {:?}", asked.elapsed());

    let subjects = store_resolved(broker, "fetch", 3).await;
    let none_asked = broker.fetch(&consumer, 0).await.expect("the consumer answers");
    assert!(none_asked.is_empty());
    let first = arrival(broker, &consumer).await;
    let mut deliveries = vec![first];
    while deliveries.len() < 3 {
        // What was stored a moment ago may not be there at the first look.
        let more = broker.fetch(&consumer, 1).await.expect("the consumer answers");
        assert!(more.len() <= 1, "no more than asked for: {more:?}");
        deliveries.extend(more);
        assert!(asked.elapsed() < PATIENCE, "{deliveries:?}");
    }

    for (delivery, subject) in deliveries.into_iter().zip(subjects) {
        assert_eq!((delivery.times, &delivery.message.subject), (1, &subject));
        let stored = broker.at(StreamName::Jobs, delivery.message.sequence).await;
        assert_eq!(stored.expect("the stream answers").as_ref(), Some(&delivery.message));
        delivery.ack().await.expect("the server confirms");
    }
}

pub(super) async fn a_nak_comes_back_after_its_delay(broker: &dyn Broker) {
    let consumer = consumer("nak");
    store_resolved(broker, "nak", 1).await;
    let mut delivery = arrival(broker, &consumer).await;
    for times in 1..=3 {
        assert_eq!(delivery.times, times);
        let given_back = Instant::now();
        delivery.nak(LATER).await.expect("the server hears it");
        delivery = arrival(broker, &consumer).await;
        // The server's clock may round a little.
        assert!(given_back.elapsed() > LATER - LATER / 10, "after {:?}", given_back.elapsed());
    }
    delivery.ack().await.expect("the server confirms");
}

pub(super) async fn acknowledged_and_terminated_never_come_back(broker: &dyn Broker) {
    let consumer = consumer("settled");
    let subjects = store_resolved(broker, "settled", 3).await;
    let mut deliveries = arrivals(broker, &consumer, 3).await;
    let put_off = deliveries.pop().expect("three came");
    let terminated = deliveries.pop().expect("three came");
    let acknowledged = deliveries.pop().expect("three came");

    // The last word counts: both are given back first, and would be there before the third.
    say(&acknowledged, Settle::Nak(LATER / 2)).await;
    acknowledged.ack().await.expect("the server confirms");
    say(&terminated, Settle::Nak(LATER / 2)).await;
    terminated.term().await.expect("the server confirms");
    put_off.nak(LATER).await.expect("the server hears it");

    let only = arrival(broker, &consumer).await;
    assert_eq!(only.message.subject, subjects[2]);
    only.ack().await.expect("the server confirms");
    assert!(broker.fetch(&consumer, 3).await.expect("the consumer answers").is_empty());
}

pub(super) async fn a_dropped_delivery_comes_back_soon(broker: &dyn Broker) {
    let consumer = consumer("dropped");
    store_resolved(broker, "dropped", 1).await;
    drop(arrival(broker, &consumer).await);

    let again = arrival(broker, &consumer).await;
    assert_eq!(again.times, 2);
    again.ack().await.expect("the server confirms");
}

pub(super) async fn progress_keeps_a_delivery_away(broker: &dyn Broker) {
    let consumer = consumer("progress");
    let subjects = store_resolved(broker, "progress", 2).await;
    let mut deliveries = arrivals(broker, &consumer, 2).await;
    let put_off = deliveries.pop().expect("two came");
    let in_progress = deliveries.pop().expect("two came");

    // Due before the other one, were it not for the word of progress.
    say(&in_progress, Settle::Nak(LATER / 2)).await;
    say(&in_progress, Settle::Progress).await;
    put_off.nak(LATER).await.expect("the server hears it");

    let only = arrival(broker, &consumer).await;
    assert_eq!(only.message.subject, subjects[1]);
    only.ack().await.expect("the server confirms");
    in_progress.ack().await.expect("the server confirms");
}

pub(super) async fn a_stream_gets_later_messages(broker: &dyn Broker) {
    let consumer = consumer("stream");
    let mut expected = store_resolved(broker, "stream", 1).await;
    let mut deliveries = broker.deliveries(&consumer, 2).await.expect("the consumer is made");
    for _ in 0..3 {
        let delivery = upcoming(&mut deliveries).await.expect("it goes on").expect("it came");
        assert_eq!((&delivery.message.subject, delivery.times), (&expected[0], 1));
        delivery.ack().await.expect("the server confirms");
        assert!(deliveries.next().now_or_never().is_none(), "nothing else was published");
        expected = store_resolved(broker, "stream", 1).await;
    }
}

pub(super) async fn purged_messages_are_not_delivered(broker: &dyn Broker) {
    let consumer = consumer("purged");
    let subjects = store_resolved(broker, "purged", 3).await;
    let open = arrival(broker, &consumer).await;
    for subject in &subjects[..2] {
        broker.purge(StreamName::Jobs, subject).await.expect("the stream answers");
    }
    // The worker that had it does not know: its word must do no harm.
    open.nak(Duration::ZERO).await.expect("the server hears it");

    let only = arrival(broker, &consumer).await;
    assert_eq!(only.message.subject, subjects[2]);
    only.ack().await.expect("the server confirms");
}

pub(super) async fn a_recreated_consumer_delivers_old_messages_as_new(rig: &dyn Rig) {
    let (broker, consumer) = (&*rig.broker(), consumer("recreated"));
    let subjects = store_resolved(broker, "recreated", 2).await;
    for _ in 0..2 {
        arrival(broker, &consumer).await.ack().await.expect("the server confirms");
    }
    rig.delete_consumer(&consumer).await;

    for subject in subjects {
        let delivery = arrival(broker, &consumer).await;
        assert_eq!((&delivery.message.subject, delivery.times), (&subject, 1));
        delivery.ack().await.expect("the server confirms");
    }
}

pub(super) async fn a_stream_whose_consumer_is_removed_can_be_asked_again(rig: &dyn Rig) {
    let (broker, consumer) = (&*rig.broker(), consumer("removed"));
    let subjects = store_resolved(broker, "removed", 1).await;
    let mut deliveries = broker.deliveries(&consumer, 1).await.expect("the consumer is made");
    let delivery = upcoming(&mut deliveries).await.expect("it goes on").expect("it came");
    delivery.ack().await.expect("the server confirms");
    rig.delete_consumer(&consumer).await;

    let delivery = loop {
        match upcoming(&mut deliveries).await {
            Some(Ok(delivery)) => break delivery,
            Some(Err(_)) | None => {
                deliveries = broker.deliveries(&consumer, 1).await.expect("it is made again");
            }
        }
    };
    assert_eq!((&delivery.message.subject, delivery.times), (&subjects[0], 1));
    delivery.ack().await.expect("the server confirms");
}

pub(super) async fn consumers_are_listed(broker: &dyn Broker) {
    for _ in 0..2 {
        broker.ensure_consumer(&consumer("listed")).await.expect("making it can be repeated");
    }
    let names = broker.consumers(StreamName::Jobs).await.expect("the stream answers");
    assert_eq!(names.iter().filter(|name| *name == "suite_listed").count(), 1, "{names:?}");

    for shared in shared_consumers() {
        let names = broker.consumers(shared.stream).await.expect("the stream answers");
        assert!(names.contains(&shared.name), "{shared:?} is not among {names:?}");
    }
}

pub(super) async fn a_lag_is_what_is_not_settled(broker: &dyn Broker) {
    let consumer = consumer("lag");
    let missing = broker.lag(&consumer).await;
    assert!(missing.is_err(), "{missing:?}");
    broker.ensure_consumer(&consumer).await.expect("it is made");
    let lag = async || broker.lag(&consumer).await.expect("the consumer answers");
    assert_eq!(lag().await, Lag::default());

    let subjects = store_resolved(broker, "lag", 3).await;
    let first = arrival(broker, &consumer).await;
    let oldest = Some(first.message.at);
    assert_eq!(first.message.subject, subjects[0]);
    // What was stored a moment ago may not be counted at the first look.
    let (all, asked) = (Lag { messages: 3, oldest }, Instant::now());
    loop {
        let found = lag().await;
        if found == all {
            break;
        }
        assert!(asked.elapsed() < PATIENCE, "a delivery that is open counts: {found:?}");
        sleep(Duration::from_millis(10)).await;
    }
    first.ack().await.expect("the server confirms");
    let later = lag().await;
    assert!(later.messages == 2 && later.oldest >= oldest, "{later:?}");
    for delivery in arrivals(broker, &consumer, 2).await {
        delivery.ack().await.expect("the server confirms");
    }
    assert_eq!(lag().await, Lag::default());
}

pub(super) async fn a_workspace_sees_only_its_own(broker: &dyn Broker) {
    // The first is a prefix of the second, and `.` separates tokens of a subject.
    let workspaces = ["team", "team.a", "team.a.b", "a"];
    let mut facts = Vec::new();
    for workspace in workspaces {
        let fact = fact(Phase::Staged, workspace, JobId::new());
        store(broker, fact.clone()).await;
        facts.push(fact);
    }
    for (workspace, fact) in workspaces.into_iter().zip(facts) {
        let consumer = step_consumer(StepName::Invoke, workspace);
        let delivery = arrival(broker, &consumer).await;
        let more = broker.fetch(&consumer, 10).await.expect("the consumer answers");
        assert!(more.is_empty(), "{workspace}: {more:?}");
        assert_eq!(delivery.message.subject, fact.subject);
        delivery.ack().await.expect("the server confirms");
    }

    let names = broker.consumers(StreamName::Jobs).await.expect("the stream answers");
    let scopes: Vec<_> = names.iter().filter_map(|name| scope_of(StepName::Invoke, name)).collect();
    for workspace in workspaces {
        assert!(scopes.iter().any(|scope| scope == workspace), "{workspace}: {names:?}");
    }
}
