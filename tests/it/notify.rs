//! Telling of a job's end: signed, until it is taken, over crashes, and again when asked.

use std::net::TcpListener;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{
    Database, Job, Options, Part, Parts, Platform, Receiver, eventually, free_ports,
};

const SOON: Duration = Duration::from_secs(60);
const LOOPBACK: &str = "actions.webhook.allow_private_addresses";
const STEPS: &str = "resolve,stage,invoke,act,archive";

const BROKEN: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";
const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const MOVED: &str =
    "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";

fn path(job: &Job) -> String {
    format!("/apis/jobs/v2/workspaces/default/jobs/{}/notification", job.name)
}

/// What the API says once telling has come to this state.
async fn comes_to(server: &Part, job: &Job, state: &str) -> Value {
    let api = server.api();
    let there = || async {
        let shown = api.get(&path(job)).await;
        (shown["state"] == state).then_some(shown)
    };
    eventually(&format!("telling is {state}"), SOON, there).await
}

async fn parts(database: Database) -> Parts {
    let mut parts = Parts::on(database).await;
    parts.set(LOOPBACK, true);
    parts
}

#[tokio::test]
async fn case_s1_an_end_is_told_until_it_is_taken_on_sqlite() {
    told_until_taken(Database::Sqlite).await;
}

#[tokio::test]
async fn case_s1_an_end_is_told_until_it_is_taken_on_postgresql() {
    told_until_taken(Database::Postgres).await;
}

async fn told_until_taken(database: Database) {
    let parts = parts(database).await;
    let (mut server, _worker) = (parts.server(), parts.worker(STEPS));
    let api = server.api();
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    api.secret("hook-key", key).await;

    let receiver = Receiver::start(&[BROKEN, BROKEN, BROKEN, TAKEN]);
    let url = format!("{}/hook", receiver.url);
    let notify = json!({"url": url, "secret": "hook-key", "headers": {"x-team": "ours"}});
    let job = api.script("echo answer", json!({"notify": notify})).await;
    let shown = comes_to(&server, &job, "sent").await;
    assert_eq!(shown["tries"].as_array().expect("a list").len(), 4, "{shown}");
    let requests = receiver.requests();
    for request in &requests {
        assert_eq!(request.header("x-team"), "ours");
        assert_eq!(request.header("webhook-id"), format!("{}:archived", job.id));
        assert_eq!(request.body, requests[0].body, "it is the same message each time");
        assert_eq!(request.header("webhook-signature"), request.signature(key));
    }
    let told: Value = serde_json::from_slice(&requests[0].body).expect("JSON");
    assert_eq!(told["type"], "errand.job.ended");
    assert_eq!(
        (&told["data"]["job"], &told["data"]["status"]),
        (&json!(job.name), &json!("completed"))
    );
    assert_eq!(told["data"]["results"].as_array().expect("a list").len(), 4, "{told}");
    assert!(!requests[0].body.windows(8).any(|part| part == b"MfKQ9r8G"), "no key is told");

    // A receiver that leads elsewhere is not followed, and that is no matter of the job's.
    let elsewhere = Receiver::start(&[MOVED]);
    let job = api.script("true", json!({"notify": {"url": elsewhere.url}})).await;
    let shown = comes_to(&server, &job, "given_up").await;
    assert!(
        shown["tries"][0]["error"].as_str().expect("a reason").contains("redirects"),
        "{shown}"
    );
    assert_eq!(job.record().await["status"], "completed");

    // Nobody listens; the server dies over it; whoever comes after tells.
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let job = api.script("exit 3", json!({"notify": {"url": format!("http://{address}")}})).await;
    let tried =
        || async { api.get(&path(&job)).await["tries"][0]["error"].is_string().then_some(()) };
    eventually("it was tried", SOON, tried).await;
    server.kill();
    let receiver = Receiver::at(TcpListener::bind(address).expect("the same port"), &[TAKEN]);
    assert!(server.start_again());
    let requests = receiver.has(1, SOON).await;
    assert_eq!(requests[0].header("webhook-id"), format!("{}:archived", job.id));
    let told: Value = serde_json::from_slice(&requests[0].body).expect("JSON");
    assert_eq!(
        (&told["data"]["status"], &told["data"]["code"]),
        (&json!("error"), &json!("agent_failed"))
    );
}

#[tokio::test]
async fn case_s1_a_receiver_that_hangs_keeps_nobody_waiting() {
    let platform = Platform::with(Options::default().set(LOOPBACK, true)).await;
    let api = platform.api();
    let (silent, receiver) = (Receiver::start(&["", TAKEN]), Receiver::start(&[TAKEN]));
    let notify = json!({"url": silent.url, "timeout_seconds": 2});
    let hangs = api.script("true", json!({"notify": notify})).await;
    silent.has(1, SOON).await;
    let other = api.script("true", json!({"notify": {"url": receiver.url}})).await;
    receiver.has(1, SOON).await;
    assert_eq!(other.ends(SOON).await["status"], "completed");
    assert_eq!(hangs.record().await["status"], "completed");
    silent.has(2, SOON).await;
}

#[tokio::test]
async fn case_s2_only_the_ends_that_were_asked_for_are_told_and_again_when_asked() {
    for database in [Database::Sqlite, Database::Postgres] {
        let parts = parts(database).await;
        let (server, _worker) = (parts.server(), parts.worker(STEPS));
        let api = server.api();
        let receiver = Receiver::start(&[TAKEN, TAKEN]);
        let notify = json!({"notify": {"url": receiver.url, "on": ["error"]}});
        let well = api.script("true", notify.clone()).await;
        let failed = api.script("exit 1", notify).await;
        comes_to(&server, &well, "not_wanted").await;
        comes_to(&server, &failed, "sent").await;
        let again = format!("{}/send", path(&failed));
        let (status, shown) = api.ask(Method::POST, &again, None).await;
        assert_eq!(status, StatusCode::OK, "{shown}");
        let requests = receiver.has(2, SOON).await;
        assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
        assert_eq!(requests[0].body, requests[1].body);
        let shown = comes_to(&server, &failed, "sent").await;
        assert_eq!(shown["tries"].as_array().expect("a list").len(), 2, "{shown}");
        let (status, shown) = api.ask(Method::POST, &format!("{}/send", path(&well)), None).await;
        assert_eq!(status, StatusCode::CONFLICT, "{shown}");
    }
}

#[tokio::test]
async fn whom_nobody_may_tell_is_refused_at_submission() {
    let platform = Platform::start().await;
    let api = platform.api();
    let jobs = "/apis/agents/v2/workspaces/default/jobs/execute";
    for (notify, status, words) in [
        (json!({"url": "http://127.0.0.1/"}), 422, "notify: url"),
        (json!({"url": "ftp://example.com/"}), 422, "notify: url: scheme 'ftp'"),
        (json!({"url": "https://example.com/", "on": ["active"]}), 422, "'completed'"),
        (json!({"url": "https://example.com/", "secret": "nothing"}), 409, "secrets"),
        (json!({"url": "https://example.com/", "to": "me"}), 422, "to"),
        (json!({}), 422, "url"),
    ] {
        let spec = json!({"agent": crate::harness::script_agent(), "input": "", "notify": notify});
        let (answered, body) = api.ask(Method::POST, jobs, Some(json!({"spec": spec}))).await;
        assert_eq!(answered.as_u16(), status, "{notify}: {body}");
        assert!(body.to_string().contains(words), "{notify}: {body}");
    }
    let job = api.script("true", json!({})).await;
    let (status, body) = api.ask(Method::GET, &path(&job), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
}
