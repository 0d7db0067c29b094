//! A5: the create route.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn execute_job_create_route_stores_canonical_step_config() {
    let api = furnished().await;
    fileset(&api, "source", &["project/app.py"]).await;
    let spec = accepted(&api, json!({"workdir": {"base_workdir": "source#project"}})).await;
    let workdir = json!({"base_workdir": "source#project", "artifact_mounts": []});
    let request = json!({
        "agent": "calc", "input": "x", "environment": null, "workdir": workdir,
        "timeout_seconds": 3600.0, "auto_telemetry": true, "image": "",
        "context": null, "post_run_action": null,
    });
    assert_eq!(spec["request"], request);
    let agent = &spec["agent"];
    assert_eq!((&agent["name"], &agent["workspace"]), (&json!("calc"), &json!("default")));
    assert_eq!(agent["config_format"], "nemo-agents-spec-v1");
    let environment = json!({
        "provider": "local", "workspace": "./workspace", "artifacts": "./artifacts",
        "connection": {}, "env": {}, "metadata": {}, "settings": {},
    });
    assert_eq!(agent["config"]["environment"], environment);
    assert_eq!(spec["workdir"]["base_workdir"], "default/source#project/");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn execute_job_create_route_maps_reserved_secret_env_to_422() {
    let api = furnished().await;
    let secrets = json!({"environment_spec": {"secrets": {"NHX_BASE_URL": "default/tok"}}});
    let answer = submit(&api, json!({"environment": secrets})).await;
    assert_eq!(answer.status, 422);
    let detail = answer.body["detail"].as_str().expect("a sentence");
    assert!(detail.contains("reserved job env var name"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn independent_problems_are_named_in_one_answer() {
    let api = furnished().await;
    let wrong = json!({
        "workdir": {
            "base_workdir": "nope",
            "artifact_mounts": [{"ref": "other", "mount_path": "x"}],
        },
        "environment": {"environment_spec": "nope"},
        "post_run_action": {"kind": "nope"},
    });
    let answer = submit(&api, wrong.clone()).await;
    let detail = answer.body["detail"].as_str().expect("a sentence");
    let missing = ["AgentEnvironmentSpec 'nope'", "Fileset 'nope'", "Fileset 'other'", "'nope'."];
    for text in missing {
        assert!(detail.contains(text), "{detail}");
    }
    assert_eq!(detail.matches("Failed to transform").count(), 1, "{detail}");
    let mut with_bounds = wrong;
    with_bounds["timeout_seconds"] = json!(1e9);
    let answer = submit(&api, with_bounds).await;
    let found = answer.body["detail"].as_array().expect("a list");
    assert_eq!(found[0]["loc"], json!(["body", "spec", "timeout_seconds"]));
    assert_eq!(found.len(), 4, "the working directory's in one: {found:?}");
}
