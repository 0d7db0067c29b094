//! What the reference answered to 82 requests, most of them refused, and what we answer.
//!
//! The file says for each whether ours is the same, has a better text, or is another answer that
//! names what is wrong.

use serde_json::{Value, json};

use crate::http::tests::harness::{Answer, Harness};
use crate::http::tests::{AGENTS, FILESETS, SECRETS};

const CASES: &str = include_str!("../../../../tests/fixtures/observed-refusals.json");

/// Cases whose `names` describes what the answer must name instead of spelling it.
const DESCRIBED: [(&str, &str); 6] = [
    ("timeout_1e308", "timeout_seconds"),
    ("unknown_spec_field", "bogus"),
    ("env_secret_name_invalid", "BAD NAME="),
    ("secret_ref_malformed", "a/b/c"),
    ("post_run_action_unknown", "nope"),
    ("envelope_unknown_field", "bogus"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observed_refusals() {
    let api = Harness::start().await;
    furnish(&api).await;
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("the file is JSON");
    assert_eq!(cases.len(), 82);
    let mut mismatches = Vec::new();
    for case in &cases {
        let answer = ask(&api, case).await;
        if let Err(reason) = compare(case, &answer) {
            let name = case["case"].as_str().unwrap_or_default();
            mismatches.push(format!("{name}: {reason}, got {} {}", answer.status, answer.body));
        }
    }
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

/// What was there when the reference was asked.
async fn furnish(api: &Harness) {
    let config = |provider: &str| {
        json!({
            "config_format": "nemo-agents-spec-v1",
            "name": "echo-agent",
            "default_harness": "echo",
            "harnesses": {"echo": {"kind": "nvidia.fabric.bench-echo"}},
            "environment": {"provider": provider},
        })
    };
    let runnable = |name: &str, provider: &str| json!({"name": name, "config_format": "nemo-agents-spec-v1", "config": config(provider)});
    let workflow = json!({"name": "nat-agent", "config": {"workflow": {}}});
    for agent in [runnable("echo-agent", "local"), runnable("docker-agent", "docker"), workflow] {
        api.post(&format!("{AGENTS}/agents"), agent).await.status_is(201);
    }
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    for path in ["a.txt", "dir/b.txt"] {
        api.put(&format!("{FILESETS}/src/-/{path}"), "644", b"x".to_vec()).await.status_is(200);
    }
    let secret = json!({"name": "tok", "value": "a secret value"});
    api.post(SECRETS, secret).await.status_is(201);
}

async fn ask(api: &Harness, case: &Value) -> Answer {
    let text = |key: &str| case[key].as_str().expect("text");
    let (method, path) = (text("method"), text("path"));
    match (text("case"), &case["body"]) {
        ("wrong_content_type", body) => {
            api.raw(method, path, "text/plain", body.as_str().expect("text")).await
        }
        ("input_1MB", _) => {
            let spec = json!({"agent": "echo-agent", "input": "x".repeat(1024 * 1024)});
            api.post(path, json!({"spec": spec})).await
        }
        (_, Value::String(body)) => api.raw(method, path, "application/json", body).await,
        (_, Value::Null) => api.send(method, path, None).await,
        (_, body) => api.send(method, path, Some(body.clone())).await,
    }
}

fn compare(case: &Value, answer: &Answer) -> Result<(), String> {
    let reference = &case["reference"];
    let ours = &case["ours"];
    let status = if ours.is_object() { &ours["status"] } else { &reference["status"] };
    if *status != answer.status {
        return Err(format!("status {status} is expected"));
    }
    let text = answer.body["detail"].to_string().to_lowercase();
    if let Some(names) = ours["names"].as_str() {
        let described = DESCRIBED.iter().find(|(name, _)| case["case"] == *name);
        let name = described.map_or(names, |(_, name)| name);
        return if text.contains(&name.to_lowercase()) {
            Ok(())
        } else {
            Err(format!("'{name}' is not named"))
        };
    }
    let detail = &reference["response"]["detail"];
    if ours == "same" && answer.status >= 400 && answer.body["detail"] != *detail {
        return Err(format!("{detail} is expected"));
    }
    Ok(())
}
