//! A1: the request, the agent that it names, and its working directory.

use super::*;

const NO_DIRECTORY: &str = "workdir.base_workdir must point to a non-empty directory";

fn base(reference: &str) -> Value {
    json!({"workdir": {"base_workdir": reference}})
}

fn mounts(paths: &[&str]) -> Value {
    let mounts: Vec<_> =
        paths.iter().map(|path| json!({"ref": "source#project", "mount_path": path})).collect();
    json!({"workdir": {"artifact_mounts": mounts}})
}

async fn with_source() -> Harness {
    let api = furnished().await;
    fileset(&api, "source", &["README.md", "project/app.py"]).await;
    api
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_config_defaults_to_bounded_fabric_timeout() {
    let api = furnished().await;
    assert_eq!(accepted(&api, json!({})).await["request"]["timeout_seconds"], 3600.0);
    assert_eq!(snapshot(&api, json!({})).await.timeout_seconds, 3600.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_config_rejects_non_positive_fabric_timeout() {
    refused(&furnished().await, json!({"timeout_seconds": 0}), "greater than 0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_resolves_bare_agent_against_route_workspace() {
    let api = furnished().await;
    let snapshot = snapshot(&api, json!({})).await;
    let agent = &snapshot.spec.agent;
    assert_eq!((agent.name.as_str(), agent.workspace.as_str()), ("calc", "default"));
    assert_eq!((snapshot.input.as_str(), snapshot.timeout_seconds), ("x", 3600.0));
    assert_eq!(snapshot.spec.workdir, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_preserves_explicit_agent_workspace() {
    let api = Harness::start().await;
    workspace(&api, "research").await;
    register(&api, "research", agent("calc")).await;
    let spec = accepted(&api, json!({"agent": "research/calc"})).await;
    assert_eq!(spec["agent"]["workspace"], "research");
    assert_eq!(spec["agent_ref"], "research/calc");
    refused(&api, json!({"agent": "calc"}), "Agent 'calc' not found").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_missing_agent() {
    refused(&furnished().await, json!({"agent": "missing"}), "Agent 'missing' not found").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_non_fabric_agent() {
    let api = furnished().await;
    register(&api, "default", json!({"name": "flow", "config": {"workflow": {}}})).await;
    refused(&api, json!({"agent": "flow"}), "only support 'nemo-agents-spec-v1'").await;
}

/// Registration refuses such an agent; only an older version of this program can have left it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_malformed_fabric_agent_config() {
    let api = furnished().await;
    let broken = crate::records::NewAgent {
        name: "broken".to_owned(),
        workspace: "default".to_owned(),
        project: None,
        description: String::new(),
        config: json!({"config_format": "nemo-agents-spec-v1", "name": "broken"}),
        config_format: "nemo-agents-spec-v1".to_owned(),
        context_schema: None,
        default_input: None,
        post_run_actions: Vec::new(),
    };
    api.records.agents().insert(broken).await.expect("it is kept");
    refused(&api, json!({"agent": "broken"}), "default_harness").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_non_local_fabric_environment() {
    let api = Harness::start().await;
    let mut docker = agent("docker");
    docker["config"]["environment"] = json!({"provider": "docker"});
    register(&api, "default", docker).await;
    refused(&api, json!({"agent": "docker"}), "only support local Fabric environments").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_validates_and_canonicalizes_base_workdir() {
    let spec = accepted(&with_source().await, base("source#project")).await;
    let workdir = json!({"base_workdir": "default/source#project/", "artifact_mounts": []});
    assert_eq!(spec["workdir"], workdir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_a_bad_extension_config_at_create_time() {
    let extension = json!({"extension": {"kind": "noop", "config": {"x": 1}}});
    refused(&furnished().await, extension, "noop").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_resolves_trusted_extension() {
    let api = furnished().await;
    let spec = accepted(&api, json!({"extension": {"kind": "agents.noop"}})).await;
    let action = json!({"kind": "agents.noop", "config": {}});
    assert_eq!((&spec["post_run_action"], &spec["request"]["post_run_action"]), (&action, &action));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_single_file_base_workdir() {
    refused(&with_source().await, base("source#README.md"), NO_DIRECTORY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canonical_base_workdir_ref_rejects_path_escape() {
    refused(&with_source().await, base("source#../secret"), "path escapes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canonical_base_workdir_ref_rejects_legacy_path_shape() {
    let api = with_source().await;
    refused(&api, base("default/source/project"), "before fileset paths").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canonical_base_workdir_root_ref_keeps_fileset_delimiter() {
    let spec = accepted(&with_source().await, base("source")).await;
    assert_eq!(spec["workdir"]["base_workdir"], "default/source#");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workdir_artifact_mount_rejects_escaping_mount_paths() {
    let api = with_source().await;
    for path in ["../secret", "data/../../secret", "/abs/path", "", ".", "data\\file"] {
        refused(&api, mounts(&[path]), "mount_path must").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workdir_artifact_mount_normalizes_relative_mount_path() {
    let spec = accepted(&with_source().await, mounts(&["data/output/"])).await;
    for shown in [&spec["workdir"], &spec["request"]["workdir"]] {
        assert_eq!(shown["artifact_mounts"][0]["mount_path"], "data/output");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workdir_spec_rejects_overlapping_mount_paths() {
    let api = with_source().await;
    for (one, other) in
        [("data", "data"), ("data", "data/file.txt"), ("data/project", "data/project/subdir")]
    {
        let text = format!("overlapping mount paths: '{one}' and '{other}'");
        refused(&api, mounts(&[one, other]), &text).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workdir_spec_allows_sibling_mount_paths() {
    let spec = accepted(&with_source().await, mounts(&["data/a", "data/b"])).await;
    assert_eq!(spec["workdir"]["artifact_mounts"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validate_agent_workdir_canonicalizes_refs() {
    let api = with_source().await;
    let mount = json!({"ref": "source#README.md", "mount_path": "notes/README.md"});
    let workdir = json!({"base_workdir": "source#project", "artifact_mounts": [mount]});
    let spec = accepted(&api, json!({"workdir": workdir})).await;
    let mount = json!({"ref": "default/source#README.md", "mount_path": "notes/README.md"});
    let workdir = json!({"base_workdir": "default/source#project/", "artifact_mounts": [mount]});
    assert_eq!(spec["workdir"], workdir);
}
