//! Submissions by request and reply: the job, or why there is none, in one answer.

use serde_json::{Value, json};

use crate::harness::{Database, Plain, Team, script_agent};

/// An answer: the status, the sentence of a refusal, and the payload.
fn ask(
    client: &mut Plain,
    workspace: &str,
    key: Option<&str>,
    body: &Value,
) -> (u16, String, Value) {
    let inbox = format!("_INBOX.{}", uuid::Uuid::now_v7().simple());
    let headers = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
    let subject = format!("submit.{workspace}");
    let answer = client.answer(&inbox, &subject, &headers, &body.to_string());
    let answer = answer.expect("it may ask");
    let code = answer.header("Nats-Service-Error-Code").map_or(Ok(201), str::parse);
    let sentence = answer.header("Nats-Service-Error").unwrap_or_default().to_owned();
    let payload = serde_json::from_slice(&answer.payload).unwrap_or_default();
    (code.expect("a number"), sentence, payload)
}

fn body(input: &str) -> Value {
    json!({"spec": {"agent": script_agent(), "input": input}})
}

#[tokio::test]
async fn who_asks_is_answered_the_job_or_the_refusal() {
    for database in [Database::Sqlite, Database::Postgres] {
        let team = Team::of(&["default", "team.a"], database).await;
        let server = team.parts.server();
        let api = server.api();
        let mut client = team.client("workspace-default").await;
        let (code, _, job) = ask(&mut client, "default", None, &body("x"));
        assert_eq!((code, &job["status"]), (201, &json!("created")), "{job}");
        let name = job["name"].as_str().expect("a name");
        let path = format!("/apis/agents/v2/workspaces/default/jobs/execute/{name}");
        assert_eq!(api.get(&path).await, job, "it is the record that HTTP gives");

        // The same request under one key is one job; another request is told so.
        let key = Some("nightly");
        let (_, _, first) = ask(&mut client, "default", key, &body("sum"));
        assert_eq!(ask(&mut client, "default", key, &body("sum")), (201, String::new(), first));
        let (code, sentence, refusal) = ask(&mut client, "default", key, &body("other"));
        assert_eq!((code, &refusal["detail"]), (409, &json!(sentence)));
        assert!(sentence.starts_with("Idempotency-Key 'nightly' was given to another request"));
        let (code, sentence, _) = ask(&mut client, "default", Some("a b"), &body("x"));
        assert_eq!(code, 422);
        assert!(sentence.contains("must be 1 to 255 visible ASCII characters"), "{sentence}");
        let listed = api.get("/apis/jobs/v2/workspaces/default/jobs").await;
        assert_eq!(listed["pagination"]["total_results"], 2);

        // The subject decides in which workspace; team.a does not exist.
        let mut other = team.client("workspace-team%2Ea").await;
        let (code, sentence, _) = ask(&mut other, "team%2Ea", None, &body("x"));
        assert_eq!(code, 422, "{sentence}");
        assert!(sentence.contains("'team.a'"), "{sentence}");
    }
}

/// How many processes say that they offer the service.
fn pongs(operator: &mut Plain, expected: usize) {
    let reply = format!("_INBOX.pings.{expected}");
    operator.publish_with_reply("$SRV.PING.errand-submit", &reply, "");
    let names = (0..expected).map(|_| {
        let message = operator.message();
        assert_eq!(message.subject, reply);
        let pong: Value = serde_json::from_slice(&message.payload).expect("it is JSON");
        pong["name"].clone()
    });
    assert_eq!(names.collect::<Vec<_>>(), vec!["errand-submit"; expected]);
}

#[tokio::test]
async fn it_is_a_service_of_any_number_of_processes_and_gone_with_the_last() {
    let team = Team::of(&["default"], Database::Sqlite).await;
    let (first, second) = (team.parts.server(), team.parts.server_with(&[]));
    let mut operator = team.client("errand").await;
    operator.subscribe("_INBOX.pings.>");
    pongs(&mut operator, 2);

    // Whoever is told to stop answers what has come before.
    let mut client = team.client("workspace-default").await;
    client.subscribe("_INBOX.many.>");
    for number in 0..20 {
        let reply = format!("_INBOX.many.{number}");
        client.publish_with_reply("submit.default", &reply, &body("x").to_string());
    }
    let answers = tokio::task::spawn_blocking(move || {
        let answers = (0..20).map(|_| client.message());
        answers.map(|it| it.header("Nats-Service-Error-Code").is_none()).collect::<Vec<_>>()
    });
    first.stop().await;
    assert_eq!(answers.await.expect("each is answered"), vec![true; 20]);
    pongs(&mut operator, 1);

    second.stop().await;
    let mut client = team.client("workspace-default").await;
    let none = client.answer("_INBOX.none", "submit.default", "", "{}").expect("it may ask");
    assert!(none.headers.starts_with("NATS/1.0 503"), "{none:?}");
}
