//! FC-W4: a harness that says that all is well, and it is not.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Job, Platform};

const SOON: Duration = Duration::from_secs(60);

async fn ended(job: &Job) -> (Value, Value) {
    let record = job.ends(SOON).await;
    (record["status"].clone(), record["error_details"]["code"].clone())
}

#[tokio::test]
async fn case_w4_an_agent_that_a_signal_ended_has_failed_whatever_it_reports() {
    let platform = Platform::start().await;
    let api = platform.api();
    let interrupted = api.script("echo working; kill -INT $$", json!({})).await;
    assert_eq!(ended(&interrupted).await, (json!("error"), json!("agent_crashed")));

    // Asked to end, it says that it has done well.
    let well = "trap 'echo done; exit 0' TERM INT; touch ready; while :; do sleep 0.1; done";
    let late = api.script(well, json!({"timeout_seconds": 2})).await;
    assert_eq!(ended(&late).await, (json!("error"), json!("timeout")));
    let cancelled = api.script(well, json!({})).await;
    cancelled.reaches("active", SOON).await;
    cancelled.cancel().await;
    assert_eq!(ended(&cancelled).await.0, "cancelled");
}

#[tokio::test]
async fn case_w4_a_success_without_the_expected_files_is_none() {
    let platform = Platform::start().await;
    let api = platform.api();
    let expecting = |files: Value| json!({"expect_files": files});
    // The harness swallowed the signal that ended its work.
    let script = "sh -c 'kill -INT $$; echo all > report.md'; echo done; exit 0";
    let swallowed = api.script(script, expecting(json!(["report.md", "*.sh"]))).await;
    let record = swallowed.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "no_result", "{record}");
    assert_eq!(
        record["error_details"]["error"],
        "the agent said that it succeeded and left no file at 'report.md' (expect_files)"
    );
    assert!(swallowed.directory("output_workdir").await.path().join("agent.sh").exists());

    // A directory is no file, and a path out of the working directory is none.
    let script = "mkdir -p report.md deep/er; echo x > deep/er/data.csv; ln -s /etc/passwd link";
    let named = expecting(json!(["deep/**/*.csv", "./deep/er", "link"]));
    assert_eq!(ended(&api.script(script, named).await).await.0, "completed");
    let empty = api.script(script, expecting(json!(["report.md"]))).await;
    assert_eq!(ended(&empty).await, (json!("error"), json!("no_result")));
    // What an agent put in the place of its directory is not looked into.
    let replaced = "cd ..; rm -rf workspace; ln -s /etc workspace; echo done";
    let replaced = api.script(replaced, expecting(json!(["passwd"]))).await;
    assert_eq!(ended(&replaced).await, (json!("error"), json!("no_result")));
    // A failure keeps its own reason.
    let failed = api.script("exit 3", expecting(json!(["report.md"]))).await;
    assert_eq!(ended(&failed).await, (json!("error"), json!("agent_failed")));
}
