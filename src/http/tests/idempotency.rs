//! FC-O1: a submission that is repeated under its key makes one job.

use futures_util::future::join_all;
use serde_json::{Value, json};
use streams::code::Code;
use streams::fact::Submitted;
use streams::id::JobId;
use streams::outcome::Outcome;
use workers::ports::{Admission, Catalog};

use super::harness::{Answer, Harness};
use super::{AGENTS, JOBS, agent};
use crate::records::tests::job::story;

fn execute() -> String {
    format!("{AGENTS}/jobs/execute")
}

fn prompt(input: &str) -> Value {
    json!({"spec": {"agent": "default/calc", "input": input}})
}

async fn furnished() -> [Harness; 2] {
    let both = Harness::start_both().await;
    for api in &both {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    }
    both
}

async fn jobs(api: &Harness, workspace: &str) -> u64 {
    let listed = api.get(&format!("/apis/jobs/v2/workspaces/{workspace}/jobs")).await;
    listed.body["pagination"]["total_results"].as_u64().expect("a number")
}

#[track_caller]
fn made(answer: Answer) -> Value {
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o1_twenty_at_once_under_one_key_are_one_job() {
    for api in furnished().await {
        let all = (0..20).map(|_| async {
            made(api.keyed(&execute(), "nightly-2026-11-30", prompt("sum")).await)
        });
        let answers = join_all(all).await;
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert_eq!(jobs(&api, "default").await, 1);
        // In another order of fields it is the same request.
        let again = json!({"spec": {"input": "sum", "agent": "default/calc"}});
        let again = made(api.keyed(&execute(), "nightly-2026-11-30", again).await);
        assert_eq!(again, answers[0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o1_a_key_stands_for_one_request_in_one_workspace() {
    for api in furnished().await {
        let first = made(api.keyed(&execute(), "k", prompt("one")).await);
        let name = first["name"].as_str().expect("a name");
        let other = api.keyed(&execute(), "k", prompt("two")).await;
        assert_eq!(other.headers["x-should-retry"], "false");
        let detail = format!(
            "Idempotency-Key 'k' was given to another request, which made job '{name}' in \
             workspace 'default'. Send that request again, or choose another key."
        );
        other.answers(409, json!({"detail": detail}));

        api.post("/apis/entities/v2/workspaces", json!({"name": "research"})).await.status_is(201);
        let elsewhere = "/apis/agents/v2/workspaces/research/jobs/execute";
        let elsewhere = made(api.keyed(elsewhere, "k", prompt("two")).await);
        assert_ne!(elsewhere["id"], first["id"]);
        assert_eq!((jobs(&api, "default").await, jobs(&api, "research").await), (1, 1));

        // What the request names may be gone by the time that it is repeated.
        let gone = api.send("DELETE", &format!("{AGENTS}/agents/calc"), None).await;
        assert_eq!(gone.status, 204);
        assert_eq!(made(api.keyed(&execute(), "k", prompt("one")).await), first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o1_a_name_that_is_given_and_taken_by_the_same_request_is_the_same_job() {
    for api in furnished().await {
        let mut named = prompt("one");
        named["name"] = json!("nightly");
        let first = made(api.keyed(&execute(), "k", named.clone()).await);
        assert_eq!(made(api.keyed(&execute(), "k", named.clone()).await), first);
        let detail = "Job 'nightly' already exists in workspace 'default'. Choose a different job \
                      name or delete the existing job before creating a new one.";
        for other in [api.post(&execute(), named.clone()).await, {
            api.keyed(&execute(), "other", named).await
        }] {
            other.answers(409, json!({"detail": detail}));
        }
        // A key that was refused for the name is free.
        made(api.keyed(&execute(), "other", prompt("two")).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o1_the_job_of_a_key_moves_on_and_once_deleted_is_made_anew() {
    for api in furnished().await {
        let first = made(api.keyed(&execute(), "k", prompt("one")).await);
        let id = first["id"].as_str().expect("an id").parse().expect("a job id");
        let ended = story(id, &Outcome::Succeeded);
        api.records.project(&ended).await.expect("it is taken in");
        let again = made(api.keyed(&execute(), "k", prompt("one")).await);
        assert_eq!((&again["id"], &again["status"]), (&first["id"], &json!("completed")));

        let path = format!("{JOBS}/{}", first["name"].as_str().expect("a name"));
        assert_eq!(api.send("DELETE", &path, None).await.status, 204);
        let anew = made(api.keyed(&execute(), "k", prompt("two")).await);
        assert_ne!(anew["id"], first["id"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o1_what_is_no_key_is_refused_with_the_header_named() {
    let [api, _] = furnished().await;
    let rerun = format!("{JOBS}/nobody/rerun");
    for bad in ["", "k y", "\u{e9}", &"k".repeat(256), &"k".repeat(300)] {
        for path in [&execute(), &rerun] {
            let refused = api.keyed(path, bad, prompt("one")).await;
            assert_eq!(refused.status, 422, "{bad}: {}", refused.body);
            let said = &refused.body["detail"][0];
            assert_eq!(said["loc"], json!(["header", "Idempotency-Key"]), "{said}");
            let msg = said["msg"].as_str().expect("a sentence");
            assert!(msg.contains("must be 1 to 255 visible ASCII characters"), "{msg}");
        }
    }
    assert_eq!(jobs(&api, "default").await, 0);
    made(api.keyed(&execute(), &"k".repeat(255), prompt("one")).await);
}

/// The id that a submit fact is published under is its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o1_a_submit_fact_that_is_sent_again_with_another_payload_is_harmless() {
    for api in furnished().await {
        let job = JobId::new();
        let fact = |agent: &str| Submitted {
            spec: Some(json!({"agent": agent, "input": "x"})),
            name: None,
            record: None,
        };
        let admit = async |agent| {
            let admitted = api.catalog.admit(job, "default", &fact(agent)).await;
            admitted.expect("records answer")
        };
        let Admission::Refused(text) = admit("nobody").await else { panic!("there is no agent") };
        let recorded = api.records.jobs().by_id(job).await.expect("records answer");
        assert!(matches!(admit("calc").await, Admission::Refused(again) if again == text));
        assert_eq!(api.records.jobs().by_id(job).await.expect("records answer"), recorded);

        let rejected = Outcome::NotRun { code: Code::Rejected, message: text };
        api.records.project(&story(job, &rejected)).await.expect("it is taken in");
        let ended = api.records.jobs().by_id(job).await.expect("records answer");
        // Its facts may have left the streams by now, and nothing else stands in the way.
        assert!(matches!(admit("calc").await, Admission::Deleted));
        assert_eq!(api.records.jobs().by_id(job).await.expect("records answer"), ended);
    }
}
