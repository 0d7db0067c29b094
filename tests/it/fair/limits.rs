//! Limits hold, over workers and restarts; what waits says why.

use std::fs;
use std::path::Path;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::LATER;
use crate::harness::{Database, Job, Options, Parts, Platform, eventually};

const OTHER_STEPS: &str = "resolve,stage,act,archive";

/// A script that notes how many run beside it.
fn counting(scratch: &Path, seconds: u32) -> String {
    let (together, most) = (scratch.join("together"), scratch.join("most"));
    format!(
        "umask 0; echo x > {t}.$$; ls {t}.* | wc -l >> {m}; sleep {seconds}; rm {t}.$$; echo done",
        t = together.display(),
        m = most.display()
    )
}

/// What they noted.
fn counted(scratch: &Path) -> Vec<u32> {
    let counts = fs::read_to_string(scratch.join("most")).unwrap_or_default();
    counts.lines().map(|line| line.trim().parse().expect("a count")).collect()
}

async fn all_complete(jobs: &[Job]) {
    for job in jobs {
        let record = job.ends(LATER).await;
        assert_eq!(record["status"], "completed", "{record}");
    }
}

#[tokio::test]
async fn case_n4_one_slot_is_one_agent_across_restarts() {
    let one_slot = || Options { slots: 1, ..Options::default() };
    let mut platform = Platform::with(one_slot()).await;
    let (api, scratch) = (platform.api(), platform.scratch());
    let script = counting(&scratch, 2);
    let mut jobs = join_all((0..3).map(|_| api.script(&script, json!({})))).await;
    for n in 1..=2 {
        let begun = || async { (counted(&scratch).len() >= n).then_some(()) };
        eventually("the next agent runs", LATER, begun).await;
        platform.kill().await;
        platform.start_again(one_slot());
        jobs = jobs.iter().map(|job| job.at(platform.api())).collect();
    }
    all_complete(&jobs).await;
    assert_eq!(counted(&scratch), [1, 1, 1], "never two at once, and each once");
}

/// Four slots at two places, and two jobs at once in the workspace; a worker is killed while it
/// has one of them.
async fn a_limit_holds(database: Database) {
    let mut parts = Parts::on(database).await;
    parts.set("fairness.max_running", 2);
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let mut first = parts.worker_at("first", "invoke", &[]);
    let _second = parts.worker_at("second", "invoke", &[]);
    let (api, scratch) = (server.api(), parts.lender.scratch());
    let script = counting(&scratch, 2);
    let jobs = join_all((0..8).map(|_| api.script(&script, json!({})))).await;
    let begun = || async { (counted(&scratch).len() >= 2).then_some(()) };
    eventually("two run", LATER, begun).await;
    first.kill();
    assert!(first.start_again(), "it comes back");
    all_complete(&jobs).await;
    let counts = counted(&scratch);
    assert_eq!(counts.len(), 8, "each ran once");
    assert_eq!(counts.iter().max(), Some(&2), "the limit was used and held: {counts:?}");
}

#[tokio::test]
async fn a_limit_of_running_jobs_holds_over_workers_and_restarts_on_sqlite() {
    a_limit_holds(Database::Sqlite).await;
}

#[tokio::test]
async fn a_limit_of_running_jobs_holds_over_workers_and_restarts_on_postgresql() {
    a_limit_holds(Database::Postgres).await;
}

/// What is held, and so not begun with, takes no seat from others.
#[tokio::test]
async fn a_job_that_is_held_keeps_nobody_from_a_seat() {
    let options = Options::default().set("fairness.workspaces", "default=1,other=0");
    let platform = Platform::with(options).await;
    let (api, scratch) = (platform.api(), platform.scratch());
    let go = scratch.join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done; echo done", go.display());
    let runs = api.script(&waits, json!({})).await;
    runs.reaches("active", LATER).await;
    let held = api.script("echo done", json!({})).await;
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}", held.name);
    let (status, body) = api.ask(reqwest::Method::POST, &format!("{path}/pause"), None).await;
    assert!(status.is_success(), "{body}");
    let next = api.script("echo done", json!({})).await;
    fs::write(&go, "").expect("it is written");
    all_complete(&[runs, next]).await;
    let (status, body) = api.ask(reqwest::Method::POST, &format!("{path}/resume"), None).await;
    assert!(status.is_success(), "{body}");
    all_complete(&[held]).await;
}

#[tokio::test]
async fn a_job_that_waits_says_why_and_the_queue_has_the_figures() {
    let options = Options::default().set("fairness.max_running", 1);
    let platform = Platform::with(options).await;
    let (api, scratch) = (platform.api(), platform.scratch());
    let go = scratch.join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done; echo done", go.display());
    let runs = api.script(&waits, json!({})).await;
    runs.reaches("active", LATER).await;
    let mut waiting = Vec::new();
    for n in 0..3 {
        let job = api.script("echo done", json!({})).await;
        let wanted =
            format!("waits: 1 of 1 jobs of workspace 'default' run, {n} wait before this one");
        let said = || async {
            let status = api
                .get(&format!("/apis/jobs/v2/workspaces/default/jobs/{}/status", job.name))
                .await;
            (status["status_details"]["message"] == *wanted).then_some(())
        };
        eventually(&wanted, LATER, said).await;
        waiting.push(job);
    }
    let queue = api.get("/apis/jobs/v2/queue").await;
    let figures = &queue["data"][0];
    let oldest = figures["oldest_waiting_seconds"].as_f64();
    assert!(oldest.is_some_and(|age| age > 0.0), "{queue}");
    assert_eq!(
        figures,
        &json!({
            "workspace": "default",
            "waiting": 3,
            "oldest_waiting_seconds": oldest,
            "held": 0,
            "running": 1,
            "max_running": 1,
        })
    );
    let shown = platform.cli().args(["jobs", "queue", "--output-format", "table"]).output();
    let shown = String::from_utf8(shown.expect("errand runs").stdout).expect("it is text");
    let words: Vec<_> = shown.lines().map(|it| it.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(words[0], ["WORKSPACE", "WAITING", "OLDEST", "HELD", "RUNNING", "LIMIT"]);
    assert_eq!((words[1][0], words[1][1]), ("default", "3"), "{shown}");
    fs::write(&go, "").expect("it is written");
    all_complete(&waiting).await;
    let queue: Value = api.get("/apis/jobs/v2/queue").await;
    assert_eq!(queue, json!({"data": []}));
}
