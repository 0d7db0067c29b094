//! A queue that is full: submissions are refused before anything is recorded.

use serde_json::{Value, json};
use streams::broker::{Expect, Publication};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Limits, StreamName};

use super::harness::{Harness, Setup};
use super::{AGENTS, JOBS, agent};

pub(super) async fn fill(api: &Harness, bytes: usize) {
    let publication = Publication {
        subject: subject::fact(Phase::Submitted, "default", JobId::new()),
        payload: vec![b' '; bytes].into(),
        message_id: None,
        expect: Expect::Empty,
        traceparent: None,
    };
    api.broker.publish(publication).await.expect("it is stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_for_which_there_is_no_room_is_not_recorded() {
    let limits = Limits { intake_max_bytes: 64 * 1024, ..Limits::default() };
    let api = Harness::set_up(Setup { limits, ..Setup::default() }).await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let execute = format!("{AGENTS}/jobs/execute");
    let body = |name: &str| json!({"spec": {"agent": "calc", "input": "x"}, "name": name});
    api.keyed(&execute, "k", body("first")).await.status_is(201);
    fill(&api, 60 * 1024).await;

    let full = async || loop {
        // What was known of the room counts for a moment.
        let answer = api.post(&execute, body("second")).await;
        if answer.status == 503 {
            return answer;
        }
        let gone = api.records.jobs().get("default", "second").await.expect("it was recorded");
        api.records.jobs().tombstone(gone.id).await.expect("it is hidden");
        tokio::task::yield_now().await;
    };
    let refused = full().await;
    assert_eq!(refused.headers["retry-after"], "2");
    let detail = "Too many submissions wait. Running jobs go on; try again later.";
    assert_eq!(refused.body, json!({"detail": detail}));
    assert!(api.records.jobs().get("default", "second").await.is_err(), "nothing is recorded");
    assert_eq!(api.send("POST", &format!("{JOBS}/first/rerun"), None).await.status, 503);
    // What is known already is no new submission.
    api.keyed(&execute, "k", body("first")).await.status_is(201);

    api.broker.purge(StreamName::Intake, "jobs.submitted.>").await.expect("there is room");
    loop {
        let answer = api.post(&execute, body("third")).await;
        match answer.status {
            503 => tokio::task::yield_now().await,
            status => break assert_eq!(status, 201, "{}", answer.body),
        }
    }
    let listed: Value = api.get(JOBS).await.body;
    assert_eq!(listed["pagination"]["total_results"], 2, "{listed}");
}
