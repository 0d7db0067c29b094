use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::broker::Expect;
use crate::broker::conformance::{self, Rig, SMALL_INTAKE_BYTES};
use crate::id::JobId;
use crate::phase::{Phase, StepName};
use crate::subject;
use crate::topology::{DUPLICATE_WINDOW, step_consumer};

struct InMemory(Memory);

#[async_trait]
impl Rig for InMemory {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::new(self.0.clone())
    }

    fn small_intake(&self) -> Arc<dyn Broker> {
        let limits = Limits { intake_max_bytes: SMALL_INTAKE_BYTES, ..Limits::default() };
        Arc::new(Memory::new(limits))
    }

    async fn delete_consumer(&self, consumer: &ConsumerSpec) {
        self.0.delete_consumer(consumer);
    }
}

#[tokio::test]
async fn it_does_what_every_broker_must() {
    conformance::exercise(&InMemory(Memory::new(Limits::default()))).await;
}

#[test]
fn filters_match_as_the_servers_do() {
    for (filter, subject, expected) in [
        ("", "a.b", true),
        (">", "a", true),
        ("a.>", "a.b.c", true),
        ("a.>", "a", false),
        ("a.*", "a.b", true),
        ("a.*", "a.b.c", false),
        ("*.b", "a.b", true),
        ("a.b", "a.b", true),
        ("a.b", "a.c", false),
        ("a.b", "a", false),
        ("a", "a.b", false),
    ] {
        assert_eq!(matches(filter, subject), expected, "'{filter}' on '{subject}'");
    }
}

/// A publication to a subject that nobody consumes but this test.
fn resolved(job: JobId) -> Publication {
    Publication {
        subject: subject::fact(Phase::Resolved, "here", job),
        payload: Bytes::from_static(b"{}"),
        message_id: Some(job.message_id(Phase::Resolved)),
        expect: Expect::Empty,
        traceparent: None,
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_longest_is_served_first() {
    let memory = Memory::new(Limits::default());
    let consumer = step_consumer(StepName::Stage, "");
    let mut workers = Vec::new();
    for _ in 0..2 {
        workers.push(memory.deliveries(&consumer, 1).await.expect("the memory answers"));
    }
    let job = JobId::new();
    memory.publish(resolved(job)).await.expect("it is stored");
    let (first, second) = workers.split_at_mut(1);
    let mut served = Vec::new();
    for _ in 0..4 {
        let (one, delivery) = tokio::select! {
            biased;
            delivery = first[0].next() => (0, delivery),
            delivery = second[0].next() => (1, delivery),
        };
        let delivery = delivery.expect("it goes on").expect("a delivery");
        delivery.nak(Duration::from_secs(60)).await.expect("the memory answers");
        served.push(one);
    }
    assert_ne!(served, [0, 0, 0, 0], "both wait, and both are served");
}

#[tokio::test(start_paused = true)]
async fn a_message_id_is_forgotten_as_at_the_server() {
    let memory = Memory::new(Limits::default());
    let fact = resolved(JobId::new());
    let publish = || memory.publish(fact.clone());
    assert!(matches!(publish().await, Ok(Published::Stored(_))));
    memory.purge(StreamName::Jobs, &fact.subject).await.expect("the memory answers");
    assert!(matches!(publish().await, Ok(Published::Exists)));
    tokio::time::advance(DUPLICATE_WINDOW).await;
    assert!(matches!(publish().await, Ok(Published::Stored(_))));
}
