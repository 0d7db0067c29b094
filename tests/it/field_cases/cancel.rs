//! FC-B: cancels that do not cancel, and orphans.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use streams::phase::Phase;

use crate::harness::{Options, Platform, eventually, running_with_argument};

const SOON: Duration = Duration::from_secs(60);

/// The queue gives an unsettled delivery back after 30 s.
const LATER: Duration = Duration::from_secs(90);

#[tokio::test]
async fn case_b1_a_process_that_left_its_session_ends_with_the_job() {
    let platform = Platform::start().await;
    let api = platform.api();
    let escape =
        |argument: &str, then: &str| format!("(setsid sh -c 'sleep {argument}' &); {then}");
    let success = api.script(&escape("77771", "exit 0"), json!({})).await;
    assert_eq!(success.ends(SOON).await["status"], "completed");
    assert_eq!(running_with_argument("77771"), [0_u32; 0]);

    let failure = api.script(&escape("77772", "exit 1"), json!({})).await;
    assert_eq!(failure.ends(SOON).await["status"], "error");
    assert_eq!(running_with_argument("77772"), [0_u32; 0]);

    let limit = json!({"timeout_seconds": 2});
    let timeout = api.script(&escape("77773", "sleep 600"), limit).await;
    assert_eq!(timeout.ends(SOON).await["status"], "error");
    assert_eq!(running_with_argument("77773"), [0_u32; 0]);

    let cancel = api.script(&escape("77774", "sleep 600"), json!({})).await;
    runs("77774").await;
    cancel.cancel().await;
    assert_eq!(cancel.ends(SOON).await["status"], "cancelled");
    assert_eq!(running_with_argument("77774"), [0_u32; 0]);
}

#[tokio::test]
async fn case_b3_the_child_is_gone_before_the_status_says_cancelled() {
    let platform = Platform::start().await;
    let job = platform.api().script("sh -c 'sleep 99991' ; true", json!({})).await;
    runs("99991").await;
    let record = job.cancel().await;
    assert_eq!(record["status"], "cancelling", "{record}");
    job.reaches("cancelled", SOON).await;
    assert_eq!(running_with_argument("99991"), [0_u32; 0]);
}

/// Cancels a running job and kills everything right after.
async fn cancelled_and_killed(argument: &str, more: serde_json::Value) {
    let mut platform = Platform::start().await;
    let starts = platform.scratch().join("starts");
    let script = format!("echo start >> {}; sleep {argument}", starts.display());
    let job = platform.api().script(&script, more).await;
    runs(argument).await;
    job.cancel().await;
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "cancelled", "{record}\n{}", platform.log());
    assert_eq!(running_with_argument(argument), [0_u32; 0]);
    assert_eq!(fs::read_to_string(starts).expect("it was started"), "start\n");
    let tasks = "/apis/jobs/v2/workspaces/default/jobs";
    let status = platform.api().get(&format!("{tasks}/{}/status", job.name)).await;
    assert_eq!(status["steps"][0]["tasks"].as_array().map(Vec::len), Some(1), "{status}");
}

#[tokio::test]
async fn case_b4_a_cancelled_job_is_not_attempted_again_by_a_worker_that_restarts() {
    cancelled_and_killed("99941", json!({"max_attempts": 3})).await;
}

#[tokio::test]
async fn case_b12_a_cancel_is_not_forgotten_when_everything_is_killed_right_after() {
    cancelled_and_killed("99121", json!({})).await;
}

#[tokio::test]
async fn case_b14_an_agent_that_ignores_term_is_killed_after_the_grace() {
    let platform = Platform::with(Options::default().set("worker.grace_seconds", 2)).await;
    let script = "trap '' INT TERM HUP; sleep 99141";
    let job = platform.api().script(script, json!({})).await;
    runs("99141").await;
    let asked = Instant::now();
    job.cancel().await;
    job.reaches("cancelled", SOON).await;
    let took = asked.elapsed();
    assert_eq!(running_with_argument("99141"), [0_u32; 0]);
    // Under the grace and two seconds; the rest is for a machine that does much else.
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(12), "{took:?}");
}

#[tokio::test]
async fn a_job_that_waits_for_a_slot_is_cancelled_at_once() {
    let options = Options { slots: 1, ..Default::default() };
    let platform = Platform::with(options).await;
    let api = platform.api();
    let first = api.script("sleep 600", json!({})).await;
    first.reaches("active", SOON).await;
    let second = api.script("echo never > never", json!({})).await;
    // Pending it is from the start, but it has no input before.
    second.reaches_phase(Phase::Staged, SOON).await;
    assert_eq!(second.status().await, "pending");
    second.cancel().await;
    // Before the queue would give its delivery again.
    second.reaches("cancelled", Duration::from_secs(25)).await;
    assert_eq!(second.result_names().await, ["input_workdir"]);
    assert_eq!(first.status().await, "active");
    // A cancel after the end changes nothing.
    assert_eq!(second.cancel().await["status"], "cancelled");
}

async fn runs(argument: &str) {
    let running = || async { (!running_with_argument(argument).is_empty()).then_some(()) };
    eventually(&format!("sleep {argument} runs"), SOON, running).await;
}
