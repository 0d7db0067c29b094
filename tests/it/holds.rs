//! Pause and resume: a job that is held back is not started, others pass it, and it is started
//! once when it is let go.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Api, Job, Options, Platform, open_directory};

const SOON: Duration = Duration::from_secs(60);

/// Before the queue gives a job that nobody let go of again by itself, which takes it 30 s.
const AT_ONCE: Duration = Duration::from_secs(25);

/// A platform with one slot.
async fn one_slot() -> Platform {
    Platform::with(Options { slots: 1, ..Options::default() }).await
}

/// A job that takes the slot until the returned file is there.
async fn blocker(api: &Api, scratch: &TempDir) -> (Job, std::path::PathBuf) {
    let file = scratch.path().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo done", file.display());
    let job = api.script(&script, json!({})).await;
    job.reaches("active", SOON).await;
    (job, file)
}

async fn ask(api: &Api, job: &Job, what: &str) -> Value {
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}/{what}", job.name);
    let (status, body) = api.ask(Method::POST, &path, None).await;
    assert!(status.is_success(), "{what}: {status} {body}");
    body["status"].clone()
}

#[tokio::test]
async fn a_paused_job_lets_others_pass_and_runs_once_when_it_is_resumed() {
    let platform = one_slot().await;
    let (api, scratch) = (platform.api(), open_directory());
    let (first, go) = blocker(&api, &scratch).await;
    assert_eq!(ask(&api, &first, "pause").await, "active", "an agent that runs goes on");
    let runs = scratch.path().join("runs");
    let held = api.script(&format!("echo x >> {}; echo done", runs.display()), json!({})).await;
    for _ in 0..2 {
        let status = ask(&api, &held, "pause").await;
        assert!(["pausing", "paused"].iter().any(|word| status == *word), "{status}");
    }
    held.reaches("paused", SOON).await;
    let other = api.script("echo done", json!({})).await;

    std::fs::write(go, "").expect("it is written");
    assert_eq!(other.ends(SOON).await["status"], "completed");
    assert_eq!(held.status().await, "paused", "it was before the other one, and did not start");
    assert!(!runs.exists());

    assert_eq!(ask(&api, &held, "resume").await, "resuming");
    assert_eq!(held.ends(AT_ONCE).await["status"], "completed");
    assert_eq!(std::fs::read_to_string(runs).expect("it ran"), "x\n");
    for what in ["pause", "resume"] {
        assert_eq!(ask(&api, &held, what).await, "completed", "a job that ended stays as it is");
    }
}

#[tokio::test]
async fn a_paused_job_can_be_cancelled_and_survives_a_restart() {
    let mut platform = one_slot().await;
    let (api, scratch) = (platform.api(), open_directory());
    let (_, go) = blocker(&api, &scratch).await;
    let held = api.script("echo done", json!({})).await;
    ask(&api, &held, "pause").await;
    held.reaches("paused", SOON).await;
    platform.kill().await;
    std::fs::write(go, "").expect("it is written");
    let platform = platform.restart(Options { slots: 1, ..Options::default() }).await;
    let held = held.at(platform.api());
    let other = platform.api().script("echo done", json!({})).await;
    assert_eq!(other.ends(SOON).await["status"], "completed");
    assert_eq!(held.status().await, "paused");
    held.cancel().await;
    assert_eq!(held.ends(AT_ONCE).await["status"], "cancelled");
}
