//! FC-K and FC-H5: what is counted against which limit, and what is not.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{
    Api, Database, Job, Options, Platform, Postgres, Stall, eventually, running_with_argument,
};

const SOON: Duration = Duration::from_secs(60);

fn one_slot() -> Options {
    Options { slots: 1, ..Options::default() }
}

/// A job that takes a slot until a file is there.
async fn blocker(api: &Api, go: &Path) -> Job {
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo done", go.display());
    let job = api.script(&script, json!({})).await;
    job.reaches("active", SOON).await;
    job
}

/// Waits until so much time has passed since then: the time is the test.
async fn passes(since: Instant, seconds: u64) {
    let passed = || async { (since.elapsed() > Duration::from_secs(seconds)).then_some(()) };
    eventually("time passes", Duration::from_secs(seconds + 30), passed).await;
}

#[track_caller]
fn is_overdue(record: &Value) {
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "queue_timeout", "{record}");
    let error = record["error_details"]["error"].as_str().expect("a reason");
    assert!(error.starts_with("not started in time: "), "{error}");
}

#[tokio::test]
async fn case_k1_time_in_the_queue_is_not_the_agents() {
    let platform = Platform::with(one_slot()).await;
    let (api, go) = (platform.api(), platform.scratch().join("go"));
    blocker(&api, &go).await;
    let queued = Instant::now();
    let job = api.script("sleep 2; echo done", json!({"timeout_seconds": 5})).await;
    passes(queued, 7).await;
    assert_eq!(job.status().await, "pending");
    fs::write(&go, "").expect("it is written");
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
}

async fn limits_the_queue(database: Database) {
    let postgres = (database == Database::Postgres).then(Postgres::start);
    let options = match &postgres {
        Some(postgres) => one_slot().set("database.url", postgres.url()),
        None => one_slot(),
    };
    let platform = Platform::with(options).await;
    let (api, scratch) = (platform.api(), platform.scratch());
    let go = scratch.join("go");
    let first = blocker(&api, &go).await;
    // Each run is another user, who cannot write to a file of the first.
    let script = format!("mktemp {}/ran.XXXXXXXX", scratch.display());
    let late = api.script(&script, json!({"queue_timeout_seconds": 10})).await;
    let held = api.script(&script, json!({"queue_timeout_seconds": 10})).await;
    let pause = format!("/apis/jobs/v2/workspaces/default/jobs/{}/pause", held.name);
    let (status, body) = api.ask(Method::POST, &pause, None).await;
    assert!(status.is_success(), "{status} {body}");
    let patient = api.script(&script, json!({"queue_timeout_seconds": 600})).await;
    for job in [&late, &held] {
        is_overdue(&job.ends(SOON).await);
        assert_eq!(job.result_names().await, ["input_workdir"]);
    }
    let watched = platform.cli().args(["jobs", "watch", &late.name]).output().expect("it runs");
    assert_eq!(watched.status.code(), Some(11), "{watched:?}");
    assert_eq!(first.status().await, "active", "the slot was taken all the time");

    // Run again, it has all of its time again.
    let again = late.record().await["spec"]["request"].clone();
    let again = api.submit(again).await;
    fs::write(&go, "").expect("it is written");
    for job in [&again, &patient] {
        let record = job.ends(SOON).await;
        assert_eq!(record["status"], "completed", "{record}");
    }
    let left = fs::read_dir(scratch).expect("it is there").flatten();
    let ran = left.filter(|file| file.file_name().to_string_lossy().starts_with("ran."));
    assert_eq!(ran.count(), 2);
}

#[tokio::test]
async fn case_k1_case_o4_a_job_that_is_not_started_in_time_fails_on_sqlite() {
    limits_the_queue(Database::Sqlite).await;
}

#[tokio::test]
async fn case_k1_case_o4_a_job_that_is_not_started_in_time_fails_on_postgresql() {
    limits_the_queue(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_k2_the_clock_starts_with_the_agent_after_the_staging() {
    let lender = Platform::start().await;
    let stall = Stall::to(&lender).await;
    let options = Options::default().with_store_of(&lender, &stall.endpoint);
    let platform = Platform::with(options).await;
    stall.stall(Some("GET /borrowed/blobs/"));
    let submitted = Instant::now();
    let script = "echo \"$NEMO_JOB_DEADLINE\" > deadline; sleep 1; echo done";
    let job = platform.api().script(script, json!({"timeout_seconds": 3})).await;
    passes(submitted, 5).await;
    stall.stall(None);
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
}

#[tokio::test]
async fn case_k5_the_limit_strikes_while_the_platform_is_paused() {
    let platform = Platform::start().await;
    let limit = json!({"timeout_seconds": 3});
    let job = platform.api().script("sleep 55551", limit).await;
    let running = || async { (!running_with_argument("55551").is_empty()).then_some(()) };
    eventually("the agent runs", SOON, running).await;
    let pid = i32::try_from(platform.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::STOP).expect("it is ours");
    let gone = || async { running_with_argument("55551").is_empty().then_some(()) };
    eventually("the agent is gone, with nobody there to be told", SOON, gone).await;
    kill_process(pid, Signal::CONT).expect("it is ours");
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "timeout", "{record}");
}

#[tokio::test]
async fn case_h5_silence_ends_a_job_and_is_told_while_it_lasts() {
    let platform = Platform::start().await;
    let limits = json!({"timeout_seconds": 3600, "idle_timeout_seconds": 15});
    let job = platform.api().script("echo words; sleep 3000", limits).await;
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}/status", job.name);
    let api = platform.api();
    let told = || async {
        let status = api.get(&path).await;
        status["status_details"]["last_output_at"].as_str().map(ToOwned::to_owned)
    };
    let at: jiff::Timestamp =
        eventually("it has said something", SOON, told).await.parse().expect("RFC 3339");
    assert!(at <= jiff::Timestamp::now());
    let shown = platform.cli().args(["jobs", "get-status", &job.name]).output().expect("it runs");
    let words = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(words.contains("last output ") && words.contains(" ago"), "{shown:?}");

    let watched = platform.cli().args(["jobs", "watch", &job.name]).output().expect("it runs");
    assert_eq!(watched.status.code(), Some(11), "{watched:?}");
    let record = job.record().await;
    assert_eq!(record["error_details"]["code"], "idle_timeout", "{record}");
    assert_eq!(record["status_details"]["last_output_at"], Value::Null, "it has ended");
    let error = job.json("fabric_error").await;
    assert_eq!(error["message"], "no output for 15 s");
    assert_eq!((&error["timed_out"], &error["fabric_status"]), (&json!(true), &json!("timeout")));
}
