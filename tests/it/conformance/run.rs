//! A4: what a run does with its input, its directories and its end; and of A1, how the directory
//! that it begins with is laid out.

use std::fs;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::adapter::{Adapter, returns};
use super::{SOON, files, shell, spec};
use crate::harness::Platform;

#[tokio::test]
async fn run_without_input_workdir_saves_empty_input_snapshot() {
    let platform = Platform::start().await;
    let script = "cat > got.txt; echo art > $FABRIC_ARTIFACTS/art.txt; echo 96";
    let mut spec = json!({"agent": shell(script), "input": "12 * 8"});
    spec["context"] = json!({"ticket": 4711});
    let job = platform.api().submit(spec).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(record["spec"]["request"]["timeout_seconds"], 3600.0);
    let names = ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(job.result_names().await, names);
    assert!(files(job.directory("input_workdir").await.path()).is_empty());
    let workdir = files(job.directory("output_workdir").await.path());
    assert_eq!(workdir, [("got.txt".to_owned(), "12 * 8".to_owned())]);
    let artifacts = files(job.directory("output_artifacts").await.path());
    assert!(artifacts.contains(&("art.txt".to_owned(), "art\n".to_owned())), "{artifacts:?}");
    let result = job.json("fabric_run_result").await;
    assert_eq!(result["request_id"], job.name);
    assert!(result["metadata"].is_object(), "{result}");
    for id in ["runtime_id", "invocation_id"] {
        assert!(result[id].as_str().is_some_and(|id| !id.is_empty()), "{id}: {result}");
    }
}

#[tokio::test]
async fn run_reports_terminal_fabric_token_usage() {
    let usage = json!({"prompt_tokens": 20, "cache_read_input_tokens": 1, "completion_tokens": 8});
    let result = json!({"status": "succeeded", "output": {"response": "96", "usage": usage}});
    let adapter = Adapter::start(&returns(&result)).await;
    let job = adapter.platform.api().submit(adapter.spec()).await;
    let details = job.ends(SOON).await["status_details"].clone();
    assert_eq!((&details["input_tokens"], &details["output_tokens"]), (&json!(21), &json!(8)));
}

#[tokio::test]
async fn run_threads_custom_timeout_to_fabric() {
    let platform = Platform::start().await;
    let mut spec = spec("echo $NEMO_JOB_DEADLINE");
    spec["timeout_seconds"] = json!(12.5);
    let job = platform.api().submit(spec).await;
    job.ends(SOON).await;
    let result = job.json("fabric_run_result").await;
    let deadline: jiff::Timestamp =
        result["response"].as_str().expect("a time").trim().parse().expect("it is RFC 3339");
    let log = job.log().await;
    assert_eq!(log[0], "Executing agent default/calc (timeout 12.5s).", "{log:?}");
    let page = format!("/apis/jobs/v2/workspaces/default/jobs/{}/logs?limit=2", job.name);
    let page = platform.api().get(&page).await;
    let invoked: jiff::Timestamp =
        page["data"][1]["timestamp"].as_str().expect("a time").parse().expect("it is RFC 3339");
    let given = deadline.duration_since(invoked).as_secs_f64();
    assert!((12.5..17.5).contains(&given), "{given}s");
}

/// Where an action may put what it is told to; it is there when the action has run.
const EXPORT: &str = "/apis/files/v2/workspaces/default/filesets/exported";

fn exporting(script: &str, path: &str) -> Value {
    let mut spec = spec(script);
    let config = json!({"fileset": "exported", "paths": [path]});
    spec["post_run_action"] = json!({"kind": "agents.export-files", "config": config});
    spec
}

#[tokio::test]
async fn run_invokes_success_extension() {
    let platform = Platform::start().await;
    let api = platform.api();
    let job = api.submit(exporting("echo 96 > answer.txt; echo 96", "answer.txt")).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(api.bytes(&format!("{EXPORT}/-/answer.txt")).await, b"96\n");
}

#[tokio::test]
async fn run_skips_extension_for_failed_fabric_result() {
    let platform = Platform::start().await;
    let api = platform.api();
    let job = api.submit(exporting("echo 96 > answer.txt; exit 3", "answer.txt")).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "agent_failed", "{record}");
    assert_eq!(api.ask(Method::GET, EXPORT, None).await.0, StatusCode::NOT_FOUND);
}

/// Ours says so in the job's error, with the reason.
#[tokio::test]
async fn run_extension_exception_is_logged() {
    let platform = Platform::start().await;
    let job = platform.api().submit(exporting("echo 96", "nothing.txt")).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "action_failed", "{record}");
    assert!(record["error_details"].to_string().contains("nothing.txt"), "{record}");
}

/// Ours refuses it at submission already.
#[tokio::test]
async fn run_rejects_non_fabric_step_config() {
    let platform = Platform::start().await;
    let mut spec = spec("echo never");
    spec["agent"]["config_format"] = json!("nat-workflow-v1");
    let path = "/apis/agents/v2/workspaces/default/jobs/execute";
    let (status, body) = platform.api().ask(Method::POST, path, Some(json!({"spec": spec}))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    assert!(body.to_string().contains("jobs only support 'nemo-agents-spec-v1'."), "{body}");
}

#[tokio::test]
async fn run_downloads_and_registers_input_workdir() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.fileset("base", &[("a.txt", "base"), ("data/b.txt", "base")]).await;
    api.fileset("more", &[("b.txt", "mount")]).await;
    let mut spec = spec("cat a.txt data/b.txt > made.txt; echo new > a.txt; echo ok");
    spec["workdir"] = json!({
        "base_workdir": "base",
        "artifact_mounts": [{"ref": "more#b.txt", "mount_path": "data/b.txt"}],
    });
    let job = api.submit(spec).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let input = files(job.directory("input_workdir").await.path());
    let named = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(input, [named("a.txt", "base"), named("data/b.txt", "mount")]);
    let output = files(job.directory("output_workdir").await.path());
    let made = named("made.txt", "basemount");
    assert_eq!(output, [named("a.txt", "new\n"), named("data/b.txt", "mount"), made]);
}

/// What the agent finds, which is also what is saved of it.
async fn laid_out(platform: &Platform, workdir: Value) -> Vec<(String, String)> {
    let mut spec = spec("true");
    spec["workdir"] = workdir;
    let job = platform.api().submit(spec).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let found = files(job.directory("output_workdir").await.path());
    assert_eq!(files(job.directory("input_workdir").await.path()), found);
    found
}

#[tokio::test]
async fn materialize_agent_workdir_downloads_base_and_mounts() {
    let platform = Platform::start().await;
    platform.api().fileset("project", &[("a.txt", "base"), ("in/b.txt", "base")]).await;
    platform
        .api()
        .fileset("notes", &[("deep/n.txt", "mount"), ("other.txt", "not asked for")])
        .await;
    let found = laid_out(
        &platform,
        json!({
            "base_workdir": "project",
            "artifact_mounts": [{"ref": "notes#deep/n.txt", "mount_path": "in/notes.txt"}],
        }),
    );
    let laid = [("a.txt", "base"), ("in/b.txt", "base"), ("in/notes.txt", "mount")];
    assert_eq!(found.await, laid.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

#[tokio::test]
async fn materialize_agent_workdir_replaces_base_directory_for_directory_mount() {
    let platform = Platform::start().await;
    let base = [("data/a.txt", "old"), ("data/deep/gone.txt", "old"), ("top.txt", "kept")];
    platform.api().fileset("project", &base).await;
    platform.api().fileset("fresh", &[("a.txt", "new"), ("b.txt", "new")]).await;
    let found = laid_out(
        &platform,
        json!({
            "base_workdir": "project",
            "artifact_mounts": [{"ref": "fresh", "mount_path": "data"}],
        }),
    );
    let laid = [("data/a.txt", "new"), ("data/b.txt", "new"), ("top.txt", "kept")];
    assert_eq!(found.await, laid.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

/// Ours gives each attempt directories of its own; there is nothing stale to clear.
#[tokio::test]
async fn run_clears_stale_input_workdir_before_materializing() {
    let seen = what_the_second_run_sees("ls; echo left > left.txt").await;
    assert_eq!(seen, "");
}

#[tokio::test]
async fn run_clears_stale_artifacts_dir_before_invoking() {
    let script = "ls $FABRIC_ARTIFACTS; echo left > $FABRIC_ARTIFACTS/left.txt";
    assert_eq!(what_the_second_run_sees(script).await, "");
}

async fn what_the_second_run_sees(script: &str) -> Value {
    let platform = Platform::start().await;
    let mut seen = Value::Null;
    for _ in 0..2 {
        let job = platform.api().submit(spec(script)).await;
        assert_eq!(job.ends(SOON).await["status"], "completed");
        seen = job.json("fabric_run_result").await["response"].take();
    }
    seen
}

#[tokio::test]
async fn run_failed_download_does_not_register_partial_result() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.fileset("base", &[("a.txt", "kept"), ("b.txt", "lost")]).await;
    let (_, lost) = blobs(&platform).into_iter().find(|(text, _)| text == "lost").expect("stored");
    fs::remove_file(lost).expect("it can be removed");
    let mut spec = spec("echo never");
    spec["workdir"] = json!({"base_workdir": "base"});
    let job = api.submit(spec).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "stage_failed", "{record}");
    assert_eq!(job.result_names().await, [""; 0]);
}

/// The small files of the object store with their texts.
fn blobs(platform: &Platform) -> Vec<(String, std::path::PathBuf)> {
    let mut found = Vec::new();
    let mut dirs = vec![platform.data()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => dirs.push(entry.path()),
                Ok(data) if data.len() < 64 => {
                    let text = fs::read_to_string(entry.path()).unwrap_or_default();
                    found.push((text, entry.path()));
                }
                _ => {}
            }
        }
    }
    found
}

#[tokio::test]
async fn run_failed_fabric_result_saves_results_and_marks_job_failed() {
    let platform = Platform::start().await;
    let job = platform.api().submit(spec("echo half > part.txt; exit 3")).await;
    assert_eq!(job.ends(SOON).await["status"], "error");
    let names = ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(job.result_names().await, names);
    let output = files(job.directory("output_workdir").await.path());
    assert_eq!(output, [("part.txt".to_owned(), "half\n".to_owned())]);
    let result = job.json("fabric_run_result").await;
    assert_eq!(result["status"], "failed");
    assert_eq!(result["error"]["code"], "agent_failed", "{result}");
}

/// Where the reference names a Python class of its test, ours names Fabric's own.
#[tokio::test]
async fn run_fabric_exception_saves_best_effort_error_results() {
    let adapter = Adapter::start("echo partial > part.txt; kill -9 $$").await;
    let job = adapter.platform.api().submit(adapter.spec()).await;
    assert_eq!(job.ends(SOON).await["status"], "error");
    let names = ["fabric_error", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(job.result_names().await, names);
    let error = job.json("fabric_error").await;
    assert_eq!(error["type"], "FabricRuntimeExecutionError", "{error}");
    assert_eq!(error["fabric_status"], "error");
    let message = error["message"].as_str().expect("a message");
    assert!(message.starts_with("Fabric runtime invocation failed: "), "{message}");
}

#[tokio::test]
async fn run_fabric_exception_preserves_original_error_if_result_save_fails() {
    let platform = Platform::start().await;
    let script = "cd ..; rm -rf workspace; ln -s /etc workspace; kill -9 $PPID; sleep 60";
    let job = platform.api().submit(spec(script)).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "agent_crashed", "{record}");
    let names = ["fabric_error", "input_workdir", "output_artifacts"];
    assert_eq!(job.result_names().await, names);
}
