//! A cancel in every phase, asked for twice, also while nobody is there to heed it, and after the
//! end: what is answered, and how the job ends. Each step is a worker of its own, so that a job
//! stands still where its next worker is missing.

use std::time::Duration;

use serde_json::json;
use streams::phase::Phase;

use crate::harness::{Database, Job, Parts, assert_none_runs, eventually, running_with_argument};

const SOON: Duration = Duration::from_secs(60);

/// What became of the cancels.
struct Cancelled {
    when: &'static str,
    job: Job,
    end: &'static str,
}

/// Asks twice and is answered the same.
async fn cancel(when: &'static str, job: Job, answer: &str, end: &'static str) -> Cancelled {
    for _ in 0..2 {
        let record = job.cancel().await;
        assert_eq!(record["status"], answer, "{when}: {record}");
    }
    Cancelled { when, job, end }
}

async fn runs(argument: &str) {
    let running = || async { (!running_with_argument(argument).is_empty()).then_some(()) };
    eventually(&format!("sleep {argument} runs"), SOON, running).await;
}

#[tokio::test]
async fn a_cancel_in_every_phase_on_sqlite() {
    cancels(Database::Sqlite, ["66611", "66612"]).await;
}

#[tokio::test]
async fn a_cancel_in_every_phase_on_postgresql() {
    cancels(Database::Postgres, ["66621", "66622"]).await;
}

async fn cancels(database: Database, [first, second]: [&str; 2]) {
    let parts = Parts::on(database).await;
    let server = parts.server();
    let api = server.api();
    let quick = || api.script("echo done", json!({}));
    let mut rows = Vec::new();

    rows.push(cancel("submitted", quick().await, "cancelling", "cancelled").await);

    let _resolve = parts.worker("resolve");
    let job = quick().await;
    job.reaches_phase(Phase::Resolved, SOON).await;
    rows.push(cancel("resolved", job, "cancelling", "cancelled").await);
    for row in &rows {
        // Nobody is there to stage them or to start their agents, and nobody is needed.
        row.job.reaches_phase(Phase::Invoked, SOON).await;
    }

    let _stage = parts.worker("stage");
    let job = quick().await;
    job.reaches_phase(Phase::Staged, SOON).await;
    rows.push(cancel("staged", job, "cancelling", "cancelled").await);
    let overdue = api.script("echo never", json!({"queue_timeout_seconds": 1})).await;
    overdue.reaches_phase(Phase::Invoked, SOON).await;

    let invoke = parts.worker("invoke");
    let job = api.script(&format!("sleep {first}"), json!({})).await;
    runs(first).await;
    rows.push(cancel("running", job.clone(), "cancelling", "cancelled").await);
    job.reaches_phase(Phase::Invoked, SOON).await;
    assert_none_runs(first);

    let starts = parts.lender.scratch().join("starts");
    let script = format!("echo start >> {}; sleep {second}", starts.display());
    let job = api.script(&script, json!({})).await;
    runs(second).await;
    invoke.stop().await;
    rows.push(cancel("running, no worker", job.clone(), "cancelling", "cancelled").await);
    assert_ne!(running_with_argument(second), [0_u32; 0], "nobody is there to stop it");
    let invoke = parts.worker("invoke");
    job.reaches_phase(Phase::Invoked, SOON).await;
    assert_none_runs(second);
    assert_eq!(std::fs::read_to_string(starts).expect("it was started"), "start\n");
    invoke.stop().await;

    let invoke = parts.worker_held_at("invoke", "invoke:saving");
    let job = quick().await;
    invoke.says("holding for a test").await;
    job.reaches("active", SOON).await;
    rows.push(cancel("saving", job.clone(), "active", "completed").await);
    invoke.stop().await;
    let _invoke = parts.worker("invoke");
    job.reaches_phase(Phase::Invoked, SOON).await;

    let act = parts.worker_held_at("act", "act:acting");
    let job = quick().await;
    act.says("holding for a test").await;
    job.reaches_phase(Phase::Invoked, SOON).await;
    rows.push(cancel("acting", job.clone(), "active", "completed").await);
    act.stop().await;
    let _act = parts.worker("act");
    job.reaches_phase(Phase::Acted, SOON).await;

    let job = quick().await;
    job.reaches_phase(Phase::Acted, SOON).await;
    rows.push(cancel("acted", job, "active", "completed").await);

    let _archive = parts.worker("archive");
    rows.push(Cancelled { when: "overdue", job: overdue, end: "error" });
    for Cancelled { when, job, end } in rows {
        let record = job.ends(SOON).await;
        assert_eq!(record["status"], end, "{when}: {record}");
        cancel(when, job, end, end).await;
    }
}
