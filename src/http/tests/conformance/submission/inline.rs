//! A6: inline agents.

use super::*;

fn inline(change: Value) -> Value {
    let mut config = agent("one-off")["config"].take();
    for (key, value) in change.as_object().expect("an object") {
        config[key] = value.clone();
    }
    json!({"config_format": "nemo-agents-spec-v1", "config": config})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_config_accepts_an_inline_agent_definition() {
    let api = Harness::start().await;
    let sent = inline(json!({}));
    let spec = accepted(&api, json!({"agent": sent})).await;
    assert_eq!(spec["request"]["agent"], sent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_config_still_rejects_a_malformed_agent_ref() {
    let text = "must be an entity name or a 'workspace/name' ref";
    refused(&Harness::start().await, json!({"agent": "not a valid ref!"}), text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_resolves_an_inline_agent_without_touching_the_entity_store() {
    let api = Harness::start().await;
    workspace(&api, "research").await;
    let there = AGENTS.replace("default", "research");
    let spec = json!({"agent": inline(json!({})), "input": "x"});
    let made = api.post(&format!("{there}/jobs/execute"), json!({"spec": spec})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let agent = &made.body["spec"]["agent"];
    assert_eq!((&agent["name"], &agent["workspace"]), (&json!("one-off"), &json!("research")));
    let stored = api.get(&format!("{there}/agents")).await;
    assert_eq!(stored.body["pagination"]["total_results"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_snapshots_the_inline_config_like_an_entity_backed_one() {
    let api = Harness::start().await;
    register(&api, "default", agent("one-off")).await;
    let inline = accepted(&api, json!({"agent": inline(json!({}))})).await;
    let stored = accepted(&api, json!({"agent": "one-off"})).await;
    assert_eq!(inline["agent"], stored["agent"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_a_malformed_inline_agent_config() {
    let api = Harness::start().await;
    for change in [json!({"bogus": 1}), json!({"default_harness": "zz"})] {
        refused(&api, json!({"agent": inline(change)}), "Inline agent config is invalid").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_a_non_fabric_inline_config_format() {
    let agent = json!({"config_format": "nat-workflow-v1", "config": {"workflow": {}}});
    refused(&Harness::start().await, json!({"agent": agent}), "is not supported").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_merges_an_environment_into_an_inline_agent() {
    let api = Harness::start().await;
    keep(&api, "environment-specs", json!({"name": "flags", "env": {"FLAG": "on"}})).await;
    let environment = json!({"environment_spec": "flags"});
    let job = json!({"agent": inline(json!({})), "environment": environment});
    let spec = accepted(&api, job).await;
    assert_eq!(spec["agent"]["config"]["environment"]["env"], json!({"FLAG": "on"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inline_agent_rejects_a_non_fabric_config_format_at_request_time() {
    let api = Harness::start().await;
    let answer = submit(&api, json!({"agent": {"config": {"workflow": {}}}})).await;
    assert_eq!((answer.status, &answer.body["detail"][0]["type"]), (422, &json!("value_error")));
    assert_eq!(answer.body["detail"][0]["loc"], json!(["body", "spec", "agent"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inline_agent_rejects_an_empty_config() {
    let api = Harness::start().await;
    for agent in [
        json!({"config_format": "nemo-agents-spec-v1"}),
        json!({"config_format": "nemo-agents-spec-v1", "config": {}}),
    ] {
        refused(&api, json!({"agent": agent}), "require a non-empty config").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_entity_may_still_hold_a_nat_workflow_config() {
    let api = Harness::start().await;
    let sent = json!({"name": "flow", "config": {"workflow": {"any": ["thing"]}}});
    let made = api.post(&format!("{AGENTS}/agents"), sent).await;
    assert_eq!((made.status, &made.body["config_format"]), (201, &json!("nat-workflow-v1")));
    assert_eq!(made.body["config"], json!({"workflow": {"any": ["thing"]}}));
}
