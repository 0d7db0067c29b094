//! A wrong submission is refused in the same words whichever way it comes, and where it comes as a
//! fact, there is a job that says so: in lists, in its record, and in its status messages.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use streams::broker::Broker;
use streams::id::JobId;
use streams::jetstream::JetStream;
use streams::topology::Limits;

use super::{Client, python, rust, written};
use crate::harness::{Came, Database, Plain, Team, eventually, script_agent, submission};

const JOBS: &str = "/apis/jobs/v2/workspaces/default/jobs";
const EXECUTE: &str = "/apis/agents/v2/workspaces/default/jobs/execute";

/// Bodies that are wrong, each in another way.
fn wrong() -> Vec<Value> {
    let with = |change: Value| {
        let mut spec = json!({"agent": script_agent(), "input": "x"});
        for (key, value) in change.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        json!({"spec": spec})
    };
    let named = |name: Value| {
        let mut body = with(json!({}));
        body["name"] = name;
        body
    };
    vec![
        // No spec, or what is none.
        json!({}),
        json!({"spec": null}),
        json!({"spec": 5}),
        json!({"spec": "agent"}),
        json!({"spec": []}),
        json!({"spec": {}, "name": 7}),
        // What a table refuses: several at once, and by name.
        json!({"spec": {"agent": "a b", "bogus": 1, "timeout_seconds": 0}}),
        with(json!({"input": 1})),
        with(json!({"timeout_seconds": 1e9})),
        with(json!({"context": {"nemo_helix": 1}})),
        with(json!({"context": (0..100_001).collect::<Vec<_>>()})),
        named(json!("x".repeat(64))),
        named(json!("No")),
        named(json!("taken")),
        // What does not exist, or does not fit.
        with(json!({"agent": "nobody"})),
        with(json!({"agent": "elsewhere/nobody"})),
        with(json!({"workdir": {"base_workdir": "nope"}})),
        with(json!({"environment": "nope"})),
        with(json!({"environment": {"environment_spec": {"secrets": {"TOKEN": "nope"}}}})),
        with(json!({"environment": {"environment_spec": {"provider": "docker"}}})),
        with(json!({"environment": {"environment_spec": {"env": {"NHX_X": "1"}}}})),
        with(json!({"post_run_action": {"kind": "nope"}})),
        with(json!({"image": "  "})),
    ]
}

/// The sentence of an answer: a list of violations is one line in a job's record.
fn sentence(detail: &Value) -> String {
    let Some(violations) = detail.as_array() else {
        return detail.as_str().expect("a sentence").to_owned();
    };
    let lines = violations.iter().map(|violation| {
        let loc = violation["loc"].as_array().expect("a list").iter();
        let loc: Vec<_> = loc.map(|step| step.as_str().expect("a key")).collect();
        format!("{}: {}", loc.join("."), violation["msg"].as_str().expect("text"))
    });
    lines.collect::<Vec<_>>().join("; ")
}

/// Reads status messages of a job until its end.
fn told(client: &mut Plain, job: JobId) -> Vec<Value> {
    let mut told = Vec::new();
    while told.last().is_none_or(|last: &Value| last["status"] != "error") {
        let message = client.message();
        assert!(message.subject.ends_with(&job.to_string()), "{message:?}");
        told.push(serde_json::from_slice(&message.payload).expect("it is JSON"));
    }
    told
}

async fn is_the_same_on(database: Database) {
    let team = Team::of(&["default"], database).await;
    let (server, _worker) = (team.parts.server(), team.worker());
    let api = server.api();
    let taken = json!({"name": "taken", "spec": {"agent": script_agent(), "input": "x"}});
    let (status, body) = api.ask(Method::POST, EXECUTE, Some(taken)).await;
    assert_eq!(status, 201, "{body}");
    let mut client = team.client("workspace-default").await;
    let mut follower = team.client("workspace-default").await;
    for body in wrong() {
        let (status, answer) = api.ask(Method::POST, EXECUTE, Some(body.clone())).await;
        assert!(status.is_client_error(), "{body}: {status} {answer}");
        let text = sentence(&answer["detail"]);

        let asked = client.answer(&inbox(), "submit.default", "", &body.to_string());
        let asked = asked.expect("it may ask");
        assert_eq!(asked.header("Nats-Service-Error-Code"), Some(status.as_str()), "{text}");
        let payload: Value = serde_json::from_slice(&asked.payload).expect("it is JSON");
        assert_eq!(payload, answer);

        let job = JobId::new();
        follower.subscribe(&format!("changes.default.{job}"));
        let subject = format!("jobs.submitted.default.{job}");
        let came = client.ask_by(&inbox(), &subject, &body.to_string());
        let Came::Allowed(receipt) = came else { panic!("{came:?}") };
        assert!(String::from_utf8_lossy(&receipt).contains("INTAKE"), "it has a receipt");

        let told = told(&mut follower, job);
        let phases: Vec<_> = told.iter().map(|it| it["phase"].clone()).collect();
        let all = ["submitted", "resolved", "staged", "invoked", "acted", "archived"];
        assert_eq!(phases, all, "each change is told: {told:?}");
        assert_eq!(told[0]["status"], "created");
        let last = told.last().expect("there is one");
        assert_eq!((&last["code"], &last["message"]), (&json!("rejected"), &json!(text)));

        let record = api.get(&format!("{JOBS}/{}", job.http())).await;
        assert_eq!(record["status"], "error", "{record}");
        let error = &record["error_details"];
        assert_eq!((&error["code"], &error["error"]), (&json!("rejected"), &json!(text)));
        assert_eq!(record["name"], last["name"]);
    }
    let listed = api.get(&format!("{JOBS}?filter[status]=error&page_size=1000")).await;
    let listed = listed["data"].as_array().expect("a list").iter();
    let refused = listed.filter(|job| job["error_details"]["code"] == "rejected");
    assert_eq!(refused.count(), wrong().len());
}

#[tokio::test]
async fn a_wrong_spec_is_refused_in_the_same_words_whichever_way_it_comes() {
    is_the_same_on(Database::Sqlite).await;
}

#[tokio::test]
async fn a_wrong_spec_is_refused_in_the_same_words_on_postgresql() {
    is_the_same_on(Database::Postgres).await;
}

/// Bytes that are no submission make no job and are in nobody's way: what is said of them is for
/// operators.
#[tokio::test]
async fn bytes_that_are_no_submission_make_no_job() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    let (server, _worker) = (team.parts.server(), team.worker());
    let mut operator = team.client("errand").await;
    operator.subscribe("jobs.refused");
    let mut client = team.client("workspace-default").await;
    let other = JobId::new();
    for bytes in
        ["", "{", "[]", "7", r#"{"v": 2, "spec": {}}"#, &format!(r#"{{"job": "{other}"}}"#)]
    {
        let subject = format!("jobs.submitted.default.{}", JobId::new());
        assert!(matches!(client.ask_by(&inbox(), &subject, bytes), Came::Allowed(_)), "{bytes}");
        let note: Value = serde_json::from_slice(&operator.message().payload).expect("JSON");
        assert_eq!((&note["subject"], &note["payload"]), (&json!(subject), &json!(bytes)));
        // The place is free again, although the worker itself may not make it so.
        eventually("there is room", Duration::from_secs(60), || {
            let again = client.ask_by(&inbox(), &subject, "{}");
            let Came::Allowed(answer) = again else { panic!("{again:?}") };
            std::future::ready((!String::from_utf8_lossy(&answer).contains("error")).then_some(()))
        })
        .await;
    }
    // A worker makes their records, and the last ones may be in its hands.
    let api = server.api();
    let total = || async { api.get(JOBS).await["pagination"]["total_results"].as_u64() };
    let six = || async { (total().await >= Some(6)).then_some(()) };
    eventually("the second ones are jobs", Duration::from_secs(60), six).await;
    assert_eq!(total().await, Some(6));
}

fn inbox() -> String {
    format!("_INBOX.{}", uuid::Uuid::now_v7().simple())
}

/// A queue that is full says so in its receipt: no client waits for a job that does not exist.
#[tokio::test]
async fn a_client_whose_submission_has_no_room_ends_with_the_words_of_the_queue() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    let small = Limits { intake_max_bytes: 16 * 1024, ..Limits::default() };
    JetStream::connect(&team.login("errand").await, small).await.expect("nats answers");
    // No worker takes anything away.
    let server = team.parts.server();
    let (broker, mut is_full) = (team.broker("errand").await, false);
    for _ in 0..32 {
        let body = json!({"spec": {}, "padding": "x".repeat(1024)});
        is_full |= broker.publish(submission(JobId::new(), &body)).await.is_err();
    }
    assert!(is_full);
    let spec = written(&team, &json!({"agent": script_agent(), "input": "x".repeat(1024)}));
    let url = team.nats.url().await;
    let job = JobId::new().to_string();
    for command in [python("default", &spec, &job), rust("default", &spec)] {
        let mut client = Client::run(&team, &server, command, "workspace-default", &url);
        assert!(!client.process.wait().expect("it ends").success());
        assert!(client.stderr().contains("maximum bytes exceeded"), "{}", client.stderr());
    }
}
