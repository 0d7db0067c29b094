//! What the world is told of a job, by several at once.

use std::sync::Arc;

use serde_json::json;
use streams::id::Attempt;
use streams::memory::Memory;
use streams::phase::Phase;
use streams::topology::Limits;
use tokio::task::JoinSet;

use super::*;
use crate::records::tests::job::{admit, second};

fn broker() -> Memory {
    Memory::new(Limits::default())
}

fn message(job: JobId, phase: Phase, status: Status) -> StatusMessage {
    StatusMessage {
        v: 1,
        job,
        workspace: "default".to_owned(),
        name: "counted".to_owned(),
        at: second(0),
        status,
        phase,
        attempt: None,
        code: None,
        message: String::new(),
        details: Map::new(),
    }
}

async fn project(broker: &Memory, message: &StatusMessage) -> bool {
    let id = format!("{}:status:{}", message.job, message.phase);
    tell(broker, By::Projector, id, message).await.expect("the queue answers")
}

/// As a worker does it, without a look at what was said.
async fn work(broker: &Memory, job: JobId, payload: Vec<u8>) {
    let publication = Publication {
        subject: subject::status("default", job),
        payload: payload.into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    broker.publish(publication).await.expect("it is stored");
}

async fn told(broker: &Memory, job: JobId) -> Vec<StatusMessage> {
    let (subject, mut from, mut told) = (subject::status("default", job), 0, Vec::new());
    let next = async |from| broker.next(StreamName::Status, &subject, from).await;
    while let Some(stored) = next(from).await.expect("the queue answers") {
        told.extend(serde_json::from_slice::<StatusMessage>(&stored.payload));
        from = stored.sequence + 1;
    }
    told
}

#[tokio::test]
async fn a_keeper_that_is_late_takes_nothing_back() {
    let (broker, job) = (broker(), JobId::new());
    assert!(project(&broker, &message(job, Phase::Invoked, Status::Active)).await);
    assert!(project(&broker, &message(job, Phase::Archived, Status::Completed)).await);
    assert!(!project(&broker, &message(job, Phase::Acted, Status::Active)).await);
    let told: Vec<_> = told(&broker, job).await.iter().map(|it| it.phase).collect();
    assert_eq!(told, [Phase::Invoked, Phase::Archived]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keepers_that_speak_at_once_keep_the_order() {
    let broker = Arc::new(broker());
    for _ in 0..200 {
        let job = JobId::new();
        let mut keepers = JoinSet::new();
        for phase in Phase::CHAIN.into_iter().rev() {
            let broker = Arc::clone(&broker);
            keepers.spawn(async move {
                let message = message(job, phase, Status::Active);
                let id = || format!("{job}:status:{phase}");
                // The projector takes its batch in again as well.
                while let Err(error) = tell(&*broker, By::Projector, id(), &message).await {
                    assert!(matches!(error, Error::Overtaken { .. }), "{error}");
                }
            });
        }
        keepers.join_all().await;
        let told: Vec<_> = told(&broker, job).await.iter().map(|it| it.phase).collect();
        assert!(told.is_sorted(), "{told:?}");
        assert_eq!(told.last(), Some(&Phase::Archived));
    }
}

#[tokio::test]
async fn what_was_said_is_not_said_again() {
    let (broker, job) = (broker(), JobId::new());
    let resolved = message(job, Phase::Resolved, Status::Pending);
    assert!(project(&broker, &resolved).await);
    assert!(!project(&broker, &resolved).await);
    broker.purge(StreamName::Status, &subject::status("default", job)).await.expect("purged");
    assert!(!project(&broker, &resolved).await, "its id is known, and that is no trouble");
    assert_eq!(told(&broker, job).await, []);
}

#[tokio::test]
async fn a_worker_may_have_said_more_of_the_phase() {
    let (broker, job) = (broker(), JobId::new());
    let running = message(job, Phase::Staged, Status::Active);
    work(&broker, job, serde_json::to_vec(&running).expect("it is JSON")).await;
    assert!(!project(&broker, &message(job, Phase::Staged, Status::Pending)).await);
    assert_eq!(told(&broker, job).await, [running]);
    assert!(project(&broker, &message(job, Phase::Invoked, Status::Active)).await);
}

#[tokio::test]
async fn what_is_no_status_is_passed_over() {
    let (broker, job) = (broker(), JobId::new());
    work(&broker, job, b"\xff".to_vec()).await;
    assert!(project(&broker, &message(job, Phase::Resolved, Status::Pending)).await);
}

#[tokio::test]
async fn a_cancel_is_told_once() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let id = admit(&records, "counted").await.id;
    let job = records.jobs().request_cancel(id).await.expect("it is noted");
    let broker = broker();
    assert!(tell_cancelling(&broker, &job).await.expect("the queue answers"));
    assert!(!tell_cancelling(&broker, &job).await.expect("the queue answers"));
    let told = told(&broker, id).await;
    let [message] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((message.status, message.phase), (Status::Cancelling, Phase::Submitted));
    assert_eq!(message.details["by"], "api");
    assert!(is_ours(message));
    records.close().await;
}

#[test]
fn of_two_messages_one_is_past() {
    use Status::{Active, Cancelled, Cancelling, Completed, Created, Paused, Pending, Resuming};
    let id = JobId::new();
    let is_past = |told: (Phase, Status), new: (Phase, Status)| {
        is_past(&message(id, told.0, told.1), &message(id, new.0, new.1))
    };
    let (staged, archived) = (Phase::Staged, Phase::Archived);
    assert!(is_past((archived, Completed), (Phase::Acted, Active)));
    assert!(!is_past((Phase::Resolved, Cancelling), (staged, Pending)));
    for (told, new, expected) in [
        (Created, Pending, false),
        (Pending, Active, false),
        (Active, Pending, true),
        (Active, Active, true),
        (Active, Cancelling, false),
        (Cancelling, Active, true),
        (Paused, Resuming, false),
        (Resuming, Active, false),
        (Cancelling, Cancelled, false),
        (Completed, Cancelled, true),
        (Completed, Cancelling, true),
    ] {
        assert_eq!(is_past((staged, told), (staged, new)), expected, "{told}, then {new}");
    }
}

#[test]
fn a_status_that_is_too_large_goes_without_its_details() {
    let mut message = message(JobId::new(), Phase::Staged, Status::Active);
    message.attempt = Some(Attempt::FIRST);
    message.details = Map::from_iter([("note".to_owned(), Value::from("x".repeat(70_000)))]);
    let payload = encode(&message, By::Projector).expect("it is JSON");
    assert!(payload.len() < 1000);
    let read: StatusMessage = serde_json::from_slice(&payload).expect("it is a status");
    assert_eq!(Value::Object(read.details), json!({"by": "projector"}));
}
