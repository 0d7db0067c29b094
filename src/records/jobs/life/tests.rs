//! The life of a job is the same in whatever order its messages arrive.

use proptest::prelude::*;

use super::*;
use crate::records::tests::job::{action_failed, attempts, fact, running, second, story, waiting};

const ID: JobId = JobId::from_uuid(uuid::Uuid::from_u128(7));

fn admitted() -> Life {
    Life {
        id: ID,
        name: "analysis-1".to_owned(),
        workspace: "default".to_owned(),
        facts: job::Job::admitted(),
        phase_times: BTreeMap::new(),
        runs: Runs::default(),
        running: None,
        patched_details: Map::new(),
    }
}

fn told(changes: &[Change]) -> (Life, Vec<StatusMessage>) {
    let mut life = admitted();
    let messages = changes.iter().filter_map(|change| life.apply(change)).collect();
    (life, messages)
}

#[test]
fn every_order_of_the_facts_makes_the_same_job() {
    let facts = Phase::CHAIN.map(|phase| fact(ID, phase, &action_failed()));
    let (expected, _) = told(&facts);
    let mut orders = vec![Vec::new()];
    for fact in &facts {
        let grow = |order: &Vec<Change>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, fact.clone());
                order
            })
        };
        orders = orders.iter().flat_map(grow).collect();
    }
    assert_eq!(orders.len(), 720);
    for order in orders {
        assert_eq!(told(&order).0, expected);
    }
}

proptest! {
    #[test]
    fn news_may_come_at_any_time_and_often(
        order in Just(story(ID, &Outcome::Succeeded)).prop_shuffle(),
        repeated in proptest::collection::vec(0..12_usize, 0..12),
    ) {
        let (expected, _) = told(&story(ID, &Outcome::Succeeded));
        let again = repeated.into_iter().map(|n| order[n].clone()).collect::<Vec<_>>();
        prop_assert_eq!(told(&[order, again].concat()).0, expected);
    }
}

#[test]
fn that_a_job_was_made_is_told_once_also_where_its_first_fact_was_read_too_early() {
    let [submitted, resolved, staged] = [Phase::Submitted, Phase::Resolved, Phase::Staged]
        .map(|phase| fact(ID, phase, &Outcome::Succeeded));
    let mut life = admitted();
    assert_eq!(life.untold(&submitted), None, "it tells of itself");
    let made = life.untold(&resolved).expect("nobody was told");
    assert_eq!(
        (made.phase, made.status, made.at),
        (Phase::Submitted, Status::Created, resolved.at)
    );
    life.apply(&resolved);
    assert_eq!(life.untold(&staged), None);
    assert_eq!(life.apply(&submitted), None, "it is no news any more");
}

#[test]
fn each_fact_is_told_as_it_happens() {
    let (life, messages) = told(&story(ID, &Outcome::Succeeded));
    let seen: Vec<_> = messages.iter().map(|it| (it.phase.token(), it.status.as_str())).collect();
    let expected = [
        ("submitted", "created"),
        ("resolved", "pending"),
        ("staged", "pending"),
        ("invoked", "active"),
        ("acted", "active"),
        ("archived", "completed"),
    ];
    assert_eq!(seen, expected);
    assert_eq!((life.attempt(), life.attempts()), (Some(Attempt(2)), attempts()));
    assert_eq!((life.started_at(), life.ended_at()), (Some(second(30)), Some(second(50))));
    let expected = json!({
        "turn": 90, "message": "Job completed successfully with exit code 0", "exit_code": 0,
        "input_tokens": 812, "output_tokens": 96,
    });
    assert_eq!(Value::Object(life.status_details()), expected);
    assert_eq!(life.error_details(), None);
}

#[test]
fn an_error_is_told_with_its_code_and_reason() {
    let (life, messages) = told(&story(ID, &action_failed()));
    let last = messages.last().expect("the end is told");
    assert_eq!((last.status, last.code), (Status::Error, action_failed().code()));
    assert_eq!(last.message, "the webhook answered 500");
    let details = life.status_details();
    assert_eq!(details["message"], "Job exited with code 1");
    assert_eq!((&details["exit_code"], &details["code"]), (&json!(1), &json!("action_failed")));
    let expected = json!({
        "message": "Job exited with code 1", "code": "action_failed",
        "error": "the webhook answered 500",
    });
    assert_eq!(life.error_details(), Some(expected));
}

#[test]
fn a_cancelled_job_shows_no_error() {
    let end = Outcome::Cancelled { message: "cancelled by a user".to_owned() };
    let mut life = admitted();
    life.facts.cancel_requested = true;
    assert_eq!(life.status_details()["message"], "Job is cancelling");
    for phase in [Phase::Resolved, Phase::Staged, Phase::Acted, Phase::Archived] {
        life.apply(&fact(ID, phase, &end));
    }
    assert_eq!(life.status(), Status::Cancelled);
    let details = life.status_details();
    assert_eq!(details["message"], "Job was cancelled with exit code 143");
    assert_eq!(details["exit_code"], 143);
    assert_eq!(life.error_details(), None);
}

#[test]
fn what_a_job_waits_for_is_shown_until_its_agent_runs() {
    let mut life = admitted();
    life.apply(&fact(ID, Phase::Staged, &Outcome::Succeeded));
    assert_eq!(life.status_details().get("waiting_for"), None);
    life.apply(&waiting(ID, 21));
    assert_eq!((life.status(), life.attempt()), (Status::Pending, None));
    assert_eq!(life.status_details()["waiting_for"], "adapter 'x'");
    life.apply(&running(ID, 1, 22, 0));
    assert_eq!(life.status(), Status::Active);
    assert_eq!(life.status_details().get("waiting_for"), None);
    // The next attempt may wait as the first did.
    life.apply(&waiting(ID, 23));
    assert_eq!(life.status_details()["waiting_for"], "adapter 'x'");
}

#[test]
fn the_newest_word_counts() {
    let mut life = admitted();
    let patch = json!({"message": "half way", "note": "mine"});
    life.patched_details = patch.as_object().cloned().expect("an object");
    for change in story(ID, &Outcome::Succeeded) {
        life.apply(&change);
        if change.news == fact(ID, Phase::Acted, &Outcome::Succeeded).news {
            assert_eq!(life.status_details()["message"], "half way");
        }
    }
    let details = life.status_details();
    assert_eq!(details["message"], "Job completed successfully with exit code 0");
    assert_eq!(details["note"], "mine");
}

#[test]
fn what_was_delivered_before_is_told_again_as_it_was_then() {
    let (mut life, _) = told(&story(ID, &Outcome::Succeeded));
    let late = fact(ID, Phase::Staged, &Outcome::Succeeded);
    assert_eq!(life.apply(&late), None, "a late fact is no news");
    let again = life.apply(&Change { redelivered: true, ..late }).expect("it may not be known");
    assert_eq!((again.phase, again.status), (Phase::Staged, Status::Pending));
    assert_eq!(life.status(), Status::Completed);
}
