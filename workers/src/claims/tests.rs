use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use streams::attempt::AttemptEnd;
use streams::broker::Broker;
use streams::code::Code;
use streams::id::{Attempt, JobId};
use streams::memory::Memory;
use streams::outcome::Outcome;
use streams::topology::Limits;
use tempfile::TempDir;

use super::{Claims, Gone, Grant, Held};

/// Long enough that nothing is taken over by the clock, and so short that everything is.
const NEVER: Duration = Duration::from_secs(3600);
const AT_ONCE: Duration = Duration::ZERO;

fn broker() -> Arc<dyn Broker> {
    Arc::new(Memory::new(Limits::default()))
}

fn worker(broker: &Arc<dyn Broker>, place: &str, locks: &TempDir, lost_after: Duration) -> Claims {
    Claims::new(Arc::clone(broker), place.to_owned(), locks.path().to_owned(), lost_after)
        .expect("the lock directory can be used")
}

fn place() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

async fn held(claims: &Claims, job: JobId) -> Held<'_> {
    match claims.take(job).await.expect("the broker answers") {
        Grant::Held(held) => held,
        Grant::Busy(after) => panic!("busy for {after:?}"),
        Grant::Settled => panic!("it is settled"),
    }
}

/// How an attempt ended that was lost.
fn lost(attempt: u32) -> AttemptEnd {
    let (code, message) = (Code::WorkerLost, String::new());
    AttemptEnd {
        attempt: Attempt(attempt),
        place: "a".to_owned(),
        started_at: Timestamp::UNIX_EPOCH,
        ended_at: Timestamp::UNIX_EPOCH,
        outcome: Outcome::Failed { code, message },
    }
}

async fn is_busy(claims: &Claims, job: JobId) -> bool {
    matches!(claims.take(job).await.expect("the broker answers"), Grant::Busy(_))
}

#[tokio::test]
async fn one_worker_has_it_and_others_wait() {
    let (broker, here, there, job) = (broker(), place(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    let beside = worker(&broker, "a", &here, NEVER);
    let elsewhere = worker(&broker, "b", &there, NEVER);
    let claim = held(&first, job).await;
    assert_eq!((claim.attempt().await, claim.is_lost().await), (Attempt::FIRST, false));
    assert!(is_busy(&first, job).await, "also for another task of the same worker");
    assert!(is_busy(&beside, job).await);
    assert!(is_busy(&elsewhere, job).await);
    assert!(!is_busy(&first, JobId::new()).await, "another job is another claim");
}

#[tokio::test]
async fn at_the_same_place_a_dead_workers_claim_is_taken_over_at_once() {
    let (broker, here, job) = (broker(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    drop(held(&first, job).await);
    drop(first);
    let second = worker(&broker, "a", &here, NEVER);
    let claim = held(&second, job).await;
    assert_eq!((claim.attempt().await, claim.is_lost().await), (Attempt::FIRST, false));
}

/// The next one to take it must know that the attempt is lost, whoever it is.
#[tokio::test]
async fn a_takeover_from_elsewhere_is_remembered() {
    let (broker, here, there, job) = (broker(), place(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    held(&first, job).await.note_start().await.expect("it is ours");
    let second = worker(&broker, "b", &there, AT_ONCE);
    assert!(held(&second, job).await.is_lost().await);
    assert!(held(&second, job).await.is_lost().await, "after a step that failed");
    drop(second);
    let third = worker(&broker, "b", &there, NEVER);
    let claim = held(&third, job).await;
    assert!(claim.is_lost().await, "after a worker that died");
    assert_eq!(claim.start().await.map(|start| start.place), Some("a".to_owned()));
    claim.next_attempt(lost(1)).await.expect("it is ours");
    assert_eq!((claim.attempt().await, claim.is_lost().await), (Attempt(2), false));
    assert_eq!(claim.start().await, None);
    drop(claim);
    assert_eq!(held(&third, job).await.past().await, [lost(1)]);
}

/// Whoever had it cannot start the agent any more, so nothing is lost with it.
#[tokio::test]
async fn what_was_not_started_elsewhere_is_started_here() {
    let (broker, here, there, job) = (broker(), place(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    let late = held(&first, job).await;
    let second = worker(&broker, "b", &there, AT_ONCE);
    let claim = held(&second, job).await;
    assert!(!claim.is_lost().await && !claim.is_started().await);
    assert!(matches!(late.note_start().await, Err(Gone::TakenOver)));
    claim.note_start().await.expect("it is ours");
}

#[tokio::test]
async fn a_claim_that_is_given_back_is_anybodys_at_once() {
    let (broker, here, there, job) = (broker(), place(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    let claim = held(&first, job).await;
    claim.next_attempt(lost(1)).await.expect("it is ours");
    claim.release().await.expect("it is ours");
    let beside = worker(&broker, "a", &here, NEVER);
    let beside = held(&beside, job).await;
    assert_eq!((beside.attempt().await, beside.past().await), (Attempt(2), vec![lost(1)]));
    assert!(matches!(claim.note_start().await, Err(Gone::TakenOver)));
    beside.release().await.expect("it is ours");
    let elsewhere = worker(&broker, "b", &there, NEVER);
    let elsewhere = held(&elsewhere, job).await;
    assert!(!elsewhere.is_lost().await);
    let second = worker(&broker, "a", &here, NEVER);
    assert!(is_busy(&second, job).await, "it is held again");
}

/// Whatever the installation says, the agent is gone before anybody else may start it: the lease
/// was renewed at the last moment, and the runner takes all the time that it gives an agent.
#[tokio::test]
async fn a_lease_and_what_follows_it_end_before_the_claim_is_lost() {
    for seconds in [10, 60, 180, 240, 241, 900, 86_400] {
        let lost_after = Duration::from_secs(seconds);
        let claims = worker(&broker(), "a", &place(), lost_after);
        let lease = claims.lease();
        let grace = (lease / 2).min(Duration::from_secs(60));
        let latest = claims.renewal() + lease + grace;
        assert!(latest < lost_after, "{seconds}: {latest:?}");
    }
}

/// A worker that is started again is another one.
#[tokio::test]
async fn each_process_is_a_worker_of_its_own() {
    let (broker, here) = (broker(), place());
    let names = [(); 3].map(|()| worker(&broker, "a", &here, NEVER).worker);
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
}

#[tokio::test]
async fn elsewhere_a_claim_that_is_renewed_is_never_taken() {
    let (broker, here, there, job) = (broker(), place(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    let claim = held(&first, job).await;
    let second = worker(&broker, "b", &there, NEVER);
    assert!(is_busy(&second, job).await);
    claim.renew().await.expect("it is ours");
    assert!(is_busy(&second, job).await);
}

#[tokio::test]
async fn a_holder_that_was_overtaken_is_told() {
    let (broker, here, there, job) = (broker(), place(), place(), JobId::new());
    let first = worker(&broker, "a", &here, NEVER);
    let claim = held(&first, job).await;
    let second = worker(&broker, "b", &there, AT_ONCE);
    let _taken = held(&second, job).await;
    assert!(matches!(claim.renew().await, Err(Gone::TakenOver)));
    assert!(matches!(claim.next_attempt(lost(1)).await, Err(Gone::TakenOver)));
}

/// The queue may have kept this note and lost the fact: the job must not be stuck for that.
#[tokio::test]
async fn a_claim_that_says_done_can_be_taken() {
    let (broker, here, job) = (broker(), place(), JobId::new());
    let claims = worker(&broker, "a", &here, NEVER);
    drop(held(&claims, job).await);
    super::finish(&claims, job).await.expect("the broker answers");
    drop(held(&claims, job).await);
}

#[tokio::test]
async fn claims_on_actions_are_others_than_claims_on_agents() {
    let (broker, place, job) = (broker(), place(), JobId::new());
    let agents = worker(&broker, "here", &place, NEVER);
    let actions = worker(&broker, "here", &place, NEVER).on_actions();
    let agent = held(&agents, job).await;
    agent.note_start().await.expect("it is ours");
    let action = held(&actions, job).await;
    assert!(!action.is_started().await);
    assert!(is_busy(&actions, job).await && is_busy(&agents, job).await);
}
