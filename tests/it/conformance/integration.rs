//! B: the reference's integration tests.

use serde_json::json;

use super::adapter::Adapter;
use super::{SOON, files, spec};
use crate::harness::Platform;

#[tokio::test]
async fn layered_workspace() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.fileset("project", &[("app/main.txt", "main"), ("app/config.txt", "base"), ("top", "t")])
        .await;
    api.fileset("config", &[("config.txt", "mounted")]).await;
    api.fileset("notes", &[("deep/notes.txt", "notes")]).await;
    let mut spec = spec("cat app/config.txt in/notes.txt");
    spec["workdir"] = json!({
        "base_workdir": "project",
        "artifact_mounts": [
            {"ref": "config#config.txt", "mount_path": "app/config.txt"},
            {"ref": "default/notes#deep/notes.txt", "mount_path": "in/notes.txt"},
        ],
    });
    let job = api.submit(spec).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    let names = ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(job.result_names().await, names);
    assert_eq!(job.json("fabric_run_result").await["response"], "mountednotes");
    let canonical = json!({
        "base_workdir": "default/project#",
        "artifact_mounts": [
            {"ref": "default/config#config.txt", "mount_path": "app/config.txt"},
            {"ref": "default/notes#deep/notes.txt", "mount_path": "in/notes.txt"},
        ],
    });
    assert_eq!(record["spec"]["workdir"], canonical);
    let input = files(job.directory("input_workdir").await.path());
    let laid = [
        ("app/config.txt", "mounted"),
        ("app/main.txt", "main"),
        ("in/notes.txt", "notes"),
        ("top", "t"),
    ];
    assert_eq!(input, laid.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

/// Where the reference has the Python class that its test raises, ours has Fabric's own.
#[tokio::test]
async fn fabric_raises() {
    let adapter = Adapter::start("echo 'the model is gone' >&2; kill -9 $$").await;
    let job = adapter.platform.api().submit(adapter.spec()).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    let names = ["fabric_error", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(job.result_names().await, names);
    let error = job.json("fabric_error").await;
    assert_eq!(error["fabric_status"], "error", "{error}");
    assert_eq!(error["type"], "FabricRuntimeExecutionError", "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("the model is gone")));
}
