//! H1, H5, H6, H8: what the seed document says beyond the reference's own tests.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_ref_names_the_agent_that_ran_and_inline_agents_have_none() {
    let api = furnished().await;
    workspace(&api, "research").await;
    register(&api, "research", agent("calc")).await;
    register(&api, "default", agent("other")).await;
    let mut inline = agent("calc");
    inline.as_object_mut().expect("an object").shift_remove("name");
    for (given, expected) in [
        (json!("calc"), json!("default/calc")),
        (json!("research/calc"), json!("research/calc")),
        (json!("other"), json!("default/other")),
        (inline, Value::Null),
    ] {
        assert_eq!(accepted(&api, json!({"agent": given})).await["agent_ref"], expected);
    }
    let filter = r#"{"spec.agent_ref":{"$in":["default/calc","research/calc"]}}"#;
    let filter = filter.replace('"', "%22").replace('{', "%7B").replace('}', "%7D");
    let listed = api.get(&format!("{}?filter={filter}", crate::http::tests::JOBS)).await;
    let jobs = listed.body["data"].as_array().expect("a list").iter();
    let mut refs: Vec<_> =
        jobs.map(|job| job["spec"]["agent_ref"].as_str().expect("text")).collect();
    refs.sort_unstable();
    assert_eq!(refs, ["default/calc", "research/calc"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_input_fills_an_omitted_input() {
    let api = furnished().await;
    let mut ready = agent("ready");
    ready["default_input"] = json!("hello");
    register(&api, "default", ready).await;
    let execute = format!("{AGENTS}/jobs/execute");
    let made = api.post(&execute, json!({"spec": {"agent": "ready"}})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(snapshot(&api, json!({"agent": "ready", "input": null})).await.input, "hello");
    assert_eq!(snapshot(&api, json!({"agent": "ready", "input": ""})).await.input, "");
    let refused = api.post(&execute, json!({"spec": {"agent": "calc"}})).await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.body["detail"][0]["loc"], json!(["body", "spec", "input"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_of_actions_are_installed_and_allowed_by_the_agent() {
    let api = furnished().await;
    let path = format!("{AGENTS}/agents");
    let mut unknown = agent("unknown");
    unknown["post_run_actions"] = json!(["nope"]);
    let refusal = api.post(&path, unknown).await;
    assert!((400..500).contains(&refusal.status), "{}", refusal.body);
    assert!(refusal.body.to_string().contains("nope"), "{}", refusal.body);

    let action =
        |kind: &str, config: Value| json!({"post_run_action": {"kind": kind, "config": config}});
    refused(&api, action("nope", json!({})), "nope").await;
    refused(&api, action("agents.noop", json!({"x": 1})), "noop").await;
    let noop = json!({"kind": "agents.noop", "config": {}});
    assert_eq!(accepted(&api, json!({})).await["post_run_action"], noop);
    let mut inline = action("agents.noop", json!({}));
    inline["agent"] = json!({
        "config_format": "nemo-agents-spec-v1", "config": agent("calc")["config"],
    });
    assert_eq!(accepted(&api, inline).await["post_run_action"], noop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_and_made_anew_does_not_change_a_submitted_job() {
    let api = furnished().await;
    fileset(&api, "source", &["a.txt"]).await;
    keep(&api, "environment-specs", json!({"name": "spec", "env": {"A": "old"}})).await;
    let old = json!({"requests": {"cpu": "1"}, "limits": {}});
    keep(&api, "compute-specs", json!({"name": "small", "resources": old})).await;
    let parts = json!({"name": "env", "environment_spec": "spec", "compute_spec": "small"});
    keep(&api, "environments", parts).await;
    let job = json!({"environment": "env", "workdir": {"base_workdir": "source"}});
    let made = submit(&api, job.clone()).await;
    let id: JobId = made.body["id"].as_str().expect("text").parse().expect("an id");
    let stored = async || {
        let job = api.records.jobs().by_id(id).await.expect("records answer");
        job.and_then(|job| job.snapshot).expect("it has a snapshot")
    };
    let before = stored().await;

    for gone in ["agents/calc", "environments/env", "environment-specs/spec", "compute-specs/small"]
    {
        api.send("DELETE", &format!("{AGENTS}/{gone}"), None).await.status_is(204);
    }
    let mut other = agent("calc");
    other["config"]["description"] = json!("another");
    register(&api, "default", other).await;
    keep(&api, "environment-specs", json!({"name": "spec", "env": {"A": "new"}})).await;
    let inline = json!({"name": "env", "environment_spec": "spec"});
    keep(&api, "environments", inline).await;
    api.put(&format!("{FILESETS}/source/-/a.txt"), "644", b"changed".to_vec()).await.status_is(200);

    assert_eq!(stored().await, before);
    let shown = api.get(&format!("{AGENTS}/jobs/execute/{}", id.http())).await;
    assert_eq!(shown.body["spec"], made.body["spec"]);
    let after = snapshot(&api, job).await;
    assert_ne!(after.base, before.base, "a job that is submitted now has the new files");
    assert_eq!(after.spec.agent.config["environment"]["env"], json!({"A": "new"}));
}
