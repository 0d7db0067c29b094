//! Ending jobs without a worker, and workers that are at it at the same moment.

use std::time::Duration;

use jiff::Timestamp;
use streams::fact::{Fact, Submitted};
use streams::memory::Memory;
use streams::phase::Phase;
use streams::topology::Limits;
use tempfile::TempDir;

use super::*;
use crate::claims::{Claims, Gone, Grant};

const WORKSPACE: &str = "default";

fn broker() -> Arc<dyn Broker> {
    Arc::new(Memory::new(Limits::default()))
}

fn over() -> QueueLimit {
    QueueLimit { seconds: 3.0, at: jiff::Timestamp::now() - Duration::from_secs(1) }
}

/// Stores a fact of a job.
async fn put<F: Fact>(
    broker: &dyn Broker,
    workspace: &str,
    job: JobId,
    fact: F,
) -> Result<(), Error> {
    let (workspace, at) = (workspace.to_owned(), Timestamp::now());
    crate::runtime::put(broker, &Envelope { job, workspace, at, traceparent: None, fact }).await
}

/// A job that is resolved, or staged as well.
async fn job(broker: &Arc<dyn Broker>, phase: Phase) -> JobId {
    let job = JobId::new();
    let resolved = Resolved { snapshot: None, outcome: None };
    put(&**broker, WORKSPACE, job, resolved).await.expect("it is stored");
    if phase == Phase::Staged {
        let staged = Staged { input_workdir: None, ethos: None, outcome: None };
        put(&**broker, WORKSPACE, job, staged).await.expect("it is stored");
    }
    job
}

async fn cancel(broker: &Arc<dyn Broker>, job: JobId) {
    let ends = Ends::new(Arc::clone(broker));
    ends.decide(job, Decision::Cancel, "test").await.expect("the broker answers");
    settle_cancel(broker, WORKSPACE, job).await.expect("the broker answers");
}

/// How a fact that stands says that the job ends.
async fn outcome<F: Fact>(broker: &Arc<dyn Broker>, job: JobId) -> Option<Outcome> {
    let stored = Envelope::<F>::stored(&**broker, WORKSPACE, job).await.expect("it can be read")?;
    stored.fact.outcome().cloned()
}

fn worker(broker: &Arc<dyn Broker>, locks: &TempDir) -> Claims {
    let (place, locks) = ("here".to_owned(), locks.path().to_owned());
    Claims::new(Arc::clone(broker), place, locks, Duration::from_secs(900)).expect("a directory")
}

fn locks() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

#[tokio::test]
async fn case_b10_a_cancel_does_not_wait_for_a_delayed_retry() {
    let (broker, locks) = (broker(), locks());
    for phase in [Phase::Resolved, Phase::Staged] {
        let job = job(&broker, phase).await;
        cancel(&broker, job).await;
        let ended = outcome::<Invoked>(&broker, job).await;
        assert!(matches!(ended, Some(Outcome::Cancelled { .. })), "{phase}: {ended:?}");
    }
    // One that a worker has claimed, and gave back with a delay before its agent was started.
    let job = job(&broker, Phase::Staged).await;
    let claims = worker(&broker, &locks);
    assert!(matches!(claims.take(job).await, Ok(Grant::Held(_))));
    cancel(&broker, job).await;
    assert!(matches!(outcome::<Invoked>(&broker, job).await, Some(Outcome::Cancelled { .. })));
    assert!(matches!(claims.take(job).await, Ok(Grant::Settled)), "it is never started");
}

#[tokio::test]
async fn a_worker_that_is_about_to_start_the_agent_and_comes_late_does_not() {
    let (broker, locks) = (broker(), locks());
    let job = job(&broker, Phase::Staged).await;
    let claims = worker(&broker, &locks);
    let Ok(Grant::Held(held)) = claims.take(job).await else { panic!("it is free") };
    settle_overdue(&broker, WORKSPACE, job, &over()).await.expect("the broker answers");
    assert!(matches!(held.note_start().await, Err(Gone::TakenOver)));
    let ended = outcome::<Invoked>(&broker, job).await.expect("it has ended");
    assert_eq!(ended.code(), Some(Code::QueueTimeout));
    assert!(ended.message().starts_with("not started in time: "), "{ended:?}");
}

#[tokio::test]
async fn an_agent_that_is_being_started_was_started_in_time_and_can_be_cancelled() {
    let (broker, locks) = (broker(), locks());
    let job = job(&broker, Phase::Staged).await;
    let claims = worker(&broker, &locks);
    let Ok(Grant::Held(held)) = claims.take(job).await else { panic!("it is free") };
    held.note_start().await.expect("it is ours");
    settle_overdue(&broker, WORKSPACE, job, &over()).await.expect("the broker answers");
    assert_eq!(outcome::<Invoked>(&broker, job).await, None);
    cancel(&broker, job).await;
    assert_eq!(outcome::<Invoked>(&broker, job).await, None, "that is the worker's to say");
    let ends = Ends::new(Arc::clone(&broker));
    assert!(ends.is_cancelled(job).await.expect("the broker answers"));
}

#[tokio::test]
async fn the_first_of_cancel_and_limit_decides() {
    let broker = broker();
    let late = job(&broker, Phase::Resolved).await;
    settle_overdue(&broker, WORKSPACE, late, &over()).await.expect("the broker answers");
    cancel(&broker, late).await;
    for ended in [outcome::<Staged>(&broker, late).await, outcome::<Invoked>(&broker, late).await] {
        assert!(matches!(ended, Some(Outcome::TimedOut { .. })), "{ended:?}");
    }
    // Cancelled, and the server that should have settled it died.
    let early = job(&broker, Phase::Staged).await;
    let ends = Ends::new(Arc::clone(&broker));
    ends.decide(early, Decision::Cancel, "test").await.expect("the broker answers");
    settle_overdue(&broker, WORKSPACE, early, &over()).await.expect("the broker answers");
    assert!(matches!(outcome::<Invoked>(&broker, early).await, Some(Outcome::Cancelled { .. })));
}

#[tokio::test]
async fn a_limit_that_has_not_struck_and_a_job_that_nobody_resolved_are_left_alone() {
    let broker = broker();
    let waiting = job(&broker, Phase::Staged).await;
    let limit = QueueLimit::from_now(600.0).expect("a limit");
    settle_overdue(&broker, WORKSPACE, waiting, &limit).await.expect("the broker answers");
    assert_eq!(outcome::<Invoked>(&broker, waiting).await, None);
    let unknown = JobId::new();
    settle_overdue(&broker, WORKSPACE, unknown, &over()).await.expect("the broker answers");
    let claim = broker.get(Bucket::Claims, &unknown.to_string()).await;
    assert!(claim.expect("the broker answers").is_none());
}

/// What a fact says that stands already counts, also for one who comes to end the job then.
#[tokio::test]
async fn a_job_that_is_decided_keeps_its_reason() {
    let broker = broker();
    let (code, message) = (Code::Rejected, "it cannot be run".to_owned());
    let refused = Outcome::NotRun { code, message };
    let resolved = JobId::new();
    let fact = Resolved::passed_on(refused.clone());
    put(&*broker, WORKSPACE, resolved, fact).await.expect("it is stored");
    cancel(&broker, resolved).await;
    let staged = job(&broker, Phase::Resolved).await;
    let fact = Staged::passed_on(refused.clone());
    put(&*broker, WORKSPACE, staged, fact).await.expect("it is stored");
    settle_overdue(&broker, WORKSPACE, staged, &over()).await.expect("the broker answers");
    for job in [resolved, staged] {
        assert_eq!(outcome::<Staged>(&broker, job).await.as_ref(), Some(&refused));
        assert_eq!(outcome::<Invoked>(&broker, job).await.as_ref(), Some(&refused));
    }
}

#[tokio::test(start_paused = true)]
async fn case_d8_a_claim_that_is_renewed_is_not_taken_and_one_that_is_not_is() {
    let (broker, locks) = (broker(), locks());
    let (lost_after, pause) = (Duration::from_secs(900), Duration::from_secs(600));
    let lost = LostClaims::new(Arc::clone(&broker), lost_after);
    let job = job(&broker, Phase::Staged).await;
    let claims = worker(&broker, &locks);
    let Ok(Grant::Held(held)) = claims.take(job).await else { panic!("it is free") };
    held.note_start().await.expect("it is ours");
    let look = async || lost.settle_cancel(WORKSPACE, job).await.expect("the broker answers");
    let ended = async || outcome::<Invoked>(&broker, job).await;
    // Not cancelled: it waits for a worker, however long.
    look().await;
    tokio::time::advance(2 * lost_after).await;
    look().await;
    assert_eq!(ended().await, None);

    cancel(&broker, job).await;
    for _ in 0..3 {
        look().await;
        tokio::time::advance(pause).await;
        held.renew().await.expect("it is ours");
    }
    look().await;
    assert_eq!(ended().await, None, "its worker lives");
    tokio::time::advance(pause).await;
    look().await;
    assert_eq!(ended().await, None, "it was seen to change a moment ago");
    tokio::time::advance(pause).await;
    look().await;
    assert!(matches!(ended().await, Some(Outcome::Cancelled { .. })));
    assert!(matches!(held.renew().await, Err(Gone::TakenOver)), "it comes too late");
    drop(held);
    assert!(matches!(claims.take(job).await, Ok(Grant::Settled)), "nothing is started again");
}

#[tokio::test]
async fn a_job_whose_facts_are_gone_is_given_up_wherever_that_was_broken_off() {
    let broker = broker();
    let job = JobId::new();
    let first = Envelope {
        job,
        workspace: WORKSPACE.to_owned(),
        at: Timestamp::now(),
        traceparent: None,
        fact: Submitted { spec: None, name: None, record: None },
    };
    let vanished = async |phase| {
        is_vanished(&*broker, WORKSPACE, job, phase).await.expect("the broker answers")
    };
    assert!(vanished(Phase::Staged).await);
    // One who died over it had written the last fact only.
    let lost = Outcome::Failed { code: Code::WorkerLost, message: "lost".to_owned() };
    put(&*broker, WORKSPACE, job, Invoked::passed_on(lost.clone())).await.expect("it is stored");
    assert!(vanished(Phase::Invoked).await);
    for _ in 0..2 {
        give_up(&broker, first.clone(), None, None).await.expect("the broker answers");
    }
    assert!(!vanished(Phase::Invoked).await);
    assert_eq!(outcome::<Invoked>(&broker, job).await, Some(lost), "the first word stands");
    for outcome in [outcome::<Resolved>(&broker, job).await, outcome::<Staged>(&broker, job).await]
    {
        assert_eq!(outcome.and_then(|outcome| outcome.code()), Some(Code::WorkerLost));
    }
}
