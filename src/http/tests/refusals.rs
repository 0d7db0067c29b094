//! Requests that are refused before anything is kept of them.

mod observed;
mod odd_text;
mod sizes;

use serde_json::{Value, json};

use super::harness::Harness;
use super::{AGENTS, FILESETS, JOBS, SECRETS, agent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_and_bodies_that_nobody_reads() {
    let api = Harness::start().await;
    for path in [format!("{JOBS}/%ff"), "/nope/%c3%28".to_owned()] {
        let detail = format!("The path '{path}' is not valid UTF-8");
        api.get(&path).await.answers(400, json!({"detail": detail}));
    }
    let deep = |levels| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let spec =
        |deep: String| format!(r#"{{"spec": {{"agent": "a", "context": {{"x": {deep}}}}}}}"#);
    for (levels, kind) in [(98, "value_error"), (10_000, "json_invalid")] {
        let body = spec(deep(levels));
        let path = format!("{AGENTS}/jobs/execute");
        let refused = api.raw("POST", &path, "application/json", &body).await;
        assert_eq!((refused.status, &refused.body["detail"][0]["type"]), (422, &json!(kind)));
    }
    let many = |values: usize| spec(format!("[{}1]", "1,".repeat(values)));
    for (values, status) in [(90_000, 422), (100_000, 422), (8_000_000, 422)] {
        let path = format!("{AGENTS}/jobs/execute");
        let refused = api.raw("POST", &path, "application/json", &many(values)).await;
        let text = "Value error, JSON must not hold more than 100000 values";
        let said = refused.body["detail"][0]["msg"] == text;
        assert_eq!((refused.status, said), (status, values >= 100_000), "{values}");
    }
    let large = json!({"name": "w", "description": "x".repeat(32 * 1024 * 1024)});
    let detail = "The request body is over the limit of 33554432 bytes";
    let refused = api.post("/apis/entities/v2/workspaces", large).await;
    refused.answers(413, json!({"detail": detail}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_that_no_variable_can_hold() {
    let api = Harness::start().await;
    let refuses = async |method: &str, path: &str, value: &str, expected: &str| {
        let body = json!({"name": "key", "value": value});
        let answer = api.send(method, path, Some(body)).await;
        assert_eq!(answer.status, 422, "{}", answer.body);
        let entry = json!({
            "type": "value_error", "loc": ["body", "value"], "input": "***",
            "msg": format!("Value error, {expected}"), "ctx": {"error": {}},
        });
        assert_eq!(answer.body["detail"], json!([entry]));
    };
    let most = 130_816;
    let fits = json!({"name": "key", "value": "x".repeat(most)});
    api.post(SECRETS, fits).await.status_is(201);
    let over = "Secret value has 130817 bytes; an environment variable holds at most 130816";
    for (method, path) in [("POST", SECRETS.to_owned()), ("PATCH", format!("{SECRETS}/key"))] {
        refuses(method, &path, "a\0b", "Secret value cannot contain a NUL character").await;
        refuses(method, &path, &"x".repeat(most + 1), over).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_could_not_be_started() {
    let api = Harness::start().await;
    let execute = format!("{AGENTS}/jobs/execute");
    let inline = |config: Value| json!({"config_format": "nemo-agents-spec-v1", "config": config});
    let check = async |pointer: &str, value: Value, expected: &str| {
        let mut config = agent("calc")["config"].take();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        config.pointer_mut(parent).expect("the parent exists")[key] = value;
        let spec = json!({"agent": inline(config), "input": "x"});
        let refused = api.post(&execute, json!({"spec": spec})).await;
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert!(refused.body.to_string().contains(expected), "{}", refused.body);
    };
    let env = async |name: &str, value: &str, expected: &str| {
        check("/environment", json!({"env": {name: value}}), expected).await;
    };
    env("ERRAND_X", "1", "Env var(s) ERRAND_X collide with reserved job env var name(s)").await;
    env("A=B", "1", "Env var 'A=B' is not a valid variable name").await;
    env("A", "a\0b", "The value of env var 'A' contains a NUL character").await;
    let relative = "Local workspace path must be relative to the agent base directory.";
    check("/environment", json!({"workspace": "/tmp"}), relative).await;
    let within = "Local artifacts path must remain within the agent base directory.";
    check("/environment", json!({"artifacts": "a/../../b"}), within).await;
    let command = "the script harness needs settings.command";
    check("/harnesses/echo", json!({"kind": "script"}), command).await;

    let environment = json!({"environment_spec": {"env": {"NHX_X": "1"}}});
    let sent = inline(agent("calc")["config"].take());
    let spec = json!({"agent": sent, "input": "x", "environment": environment});
    let refused = api.post(&execute, json!({"spec": spec})).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.to_string().contains("Env var(s) NHX_X collide"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_of_files_are_kept_normalised() {
    let api = Harness::start().await;
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    for typed in ["a//b", "a%2F%2Fb", "a%2F.%2Fb"] {
        let made = api.put(&format!("{FILESETS}/src/-/{typed}"), "644", typed.into()).await;
        let shown = typed.replace("%2F", "/");
        assert_eq!((made.status, &made.body["path"]), (200, &json!(shown)), "{}", made.body);
        let listed = api.get(&format!("{FILESETS}/src/files")).await;
        let paths: Vec<_> = listed.body["data"].as_array().expect("a list").iter().collect();
        assert_eq!(paths.len(), 1, "{}", listed.body);
        assert_eq!(paths[0]["path"], "a/b", "{typed}");
        let read = api.bytes(&format!("{FILESETS}/src/-/a/b"), None).await;
        assert_eq!(read.bytes, typed.as_bytes());
    }
    let long = "n".repeat(256);
    let refused = api.put(&format!("{FILESETS}/src/-/a/{long}/b"), "644", "x".into()).await;
    let detail = format!("Path segment '{long}' has 256 bytes, shorten it to 255");
    refused.answers(400, json!({"detail": detail}));
}
