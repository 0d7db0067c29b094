//! Records that are made anew from streams and manifests: what the API shows of every job is what
//! it showed before.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use streams::broker::Broker;
use streams::id::JobId;
use streams::phase::Phase;
use tempfile::TempDir;

use crate::harness::{Api, Database, Job, Parts, Postgres, eventually, script_agent, submission};

const SOON: Duration = Duration::from_secs(120);
const EXECUTE: &str = "/apis/agents/v2/workspaces/default/jobs/execute";
const BATCHES: &str = "/apis/agents/v2/workspaces/default/jobs/execute:batch";
const JOBS: &str = "/apis/jobs/v2/workspaces/default/jobs";

/// Jobs of several ends, all ended.
async fn several(api: &Api) -> Vec<Job> {
    let spec = json!({"agent": script_agent(), "input": "é"});
    let fields = json!({"team": "a", "large": "x".repeat(40_000)});
    let body = json!({"spec": spec, "description": "nightly", "custom_fields": fields});
    let (status, failed) = api.ask(Method::POST, EXECUTE, Some(body)).await;
    assert_eq!(status, StatusCode::CREATED, "{failed}");
    let failed = Job::new(api.clone(), &failed);
    let path = format!("{JOBS}/{}/rerun", failed.name);
    let (status, again) = api.ask(Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::CREATED, "{again}");
    let mut jobs = vec![failed, Job::new(api.clone(), &again)];
    jobs.push(api.script("echo said; echo kept > file", json!({})).await);
    jobs.push(api.script("sleep 600", json!({"timeout_seconds": 1})).await);
    let cancelled = api.script("sleep 600", json!({})).await;
    cancelled.cancel().await;
    jobs.push(cancelled);
    for job in &jobs {
        job.ends(SOON).await;
    }
    jobs
}

/// Jobs that came as facts: one that runs, one that is refused.
async fn foreign(api: &Api, broker: &dyn Broker) -> Vec<Job> {
    let mut jobs = Vec::new();
    for agent in [script_agent(), json!("nobody")] {
        let id = JobId::new();
        let body = json!({"spec": {"agent": agent, "input": ""}});
        broker.publish(submission(id, &body)).await.expect("it is stored");
        let path = format!("{JOBS}/{}", id.http());
        let record = || async {
            let (status, record) = api.ask(Method::GET, &path, None).await;
            status.is_success().then_some(record)
        };
        jobs.push(Job::new(api.clone(), &eventually("there is a record", SOON, record).await));
    }
    for job in &jobs {
        job.ends(SOON).await;
    }
    jobs
}

/// All that is shown of a job.
async fn shown(api: &Api, job: &Job) -> Value {
    let of = |rest: &str| format!("{JOBS}/{}{rest}", job.name);
    let typed = api.get(&format!("{EXECUTE}/{}", job.name)).await;
    json!({
        "generic": api.get(&of("")).await,
        "typed": typed,
        "status": api.get(&of("/status")).await,
        "results": api.get(&of("/results")).await,
        "steps": api.get(&of("/steps")).await,
        "logs": api.get(&of("/logs?limit=1000")).await,
    })
}

/// When a job was recorded that came as a fact is known to its record only; when it was submitted,
/// only to its fact.
fn without_creation(shown: &mut Value) {
    match shown {
        Value::Object(fields) => {
            for time in ["created_at", "updated_at", "submitted"] {
                fields.remove(time);
            }
            fields.values_mut().for_each(without_creation);
        }
        Value::Array(items) => items.iter_mut().for_each(without_creation),
        _ => {}
    }
}

async fn everything(api: &Api, jobs: &[Job], foreign: &[Job]) -> Vec<Value> {
    let mut all = Vec::new();
    for job in jobs {
        all.push(shown(api, job).await);
    }
    for job in foreign {
        let mut shown = shown(api, job).await;
        without_creation(&mut shown);
        all.push(shown);
    }
    all
}

/// The counts that a rebuild reports.
fn rebuilt(parts: &Parts, database: &[(&str, &str)]) -> Vec<(String, u64)> {
    let output = parts.run(&["records", "rebuild", "--output-format", "json"], database);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let rows = report["data"].as_array().expect("a list").iter();
    let row = |row: &Value| {
        Some((row["jobs"].as_str()?.to_owned(), row["count"].as_u64().filter(|it| *it > 0)?))
    };
    rows.filter_map(row).collect()
}

async fn records_are_made_anew(database: Database) {
    let parts = Parts::on(database).await;
    let broker = parts.broker().await;
    let _worker = parts.worker("resolve,stage,invoke,act,archive");

    // Some jobs of which only the manifest is left.
    let first = parts.server_with(&[("ERRAND__RETENTION__FINISHED_SECONDS", "0")]);
    let mut jobs = several(&first.api()).await;
    let mut others = foreign(&first.api(), &*broker).await;
    let deleted = jobs.remove(0);
    let path = format!("{JOBS}/{}", deleted.name);
    let gone = first.api().ask(Method::DELETE, &path, None).await;
    assert_eq!(gone.0, StatusCode::NO_CONTENT, "{}", gone.1);
    for job in jobs.iter().chain(&others) {
        let left = || async {
            job.facts(&*broker).await.iter().all(|(_, fact)| fact.is_none()).then_some(())
        };
        eventually("its messages have left the streams", SOON, left).await;
    }
    first.stop().await;

    // Some that ended, and some that are on their way: two run, one waits, one is held.
    let second = parts.server();
    let api = second.api();
    jobs.extend(several(&api).await);
    others.extend(foreign(&api, &*broker).await);
    for _ in 0..2 {
        let runs = api.script("echo runs; sleep 600", json!({})).await;
        runs.reaches("active", SOON).await;
        let said = || async { runs.log().await.contains(&"runs".to_owned()).then_some(()) };
        eventually("its line is there", SOON, said).await;
        jobs.push(runs);
    }
    let waits = api.script("echo never", json!({})).await;
    waits.reaches_phase(Phase::Staged, SOON).await;
    jobs.push(waits);
    let held = api.script("echo never", json!({})).await;
    held.reaches_phase(Phase::Staged, SOON).await;
    let (status, _) = api.ask(Method::POST, &format!("{JOBS}/{}/pause", held.name), None).await;
    assert_eq!(status, StatusCode::OK);
    held.reaches("paused", SOON).await;
    jobs.push(held);
    let line = json!({"spec": {"agent": script_agent(), "input": ""}});
    let (_, in_batch) =
        api.ask(Method::POST, &format!("{BATCHES}?group=nightly"), Some(line)).await;
    let in_batch = Job::new(api.clone(), &in_batch["job"]);
    in_batch.reaches_phase(Phase::Staged, SOON).await;
    jobs.push(in_batch);
    let before = everything(&api, &jobs, &others).await;
    second.stop().await;

    let (directory, server) = (TempDir::new().expect("a directory"), Postgres::start());
    let url = match database {
        Database::Sqlite => format!("sqlite://{}", directory.path().join("anew.db").display()),
        Database::Postgres => server.url(),
    };
    let anew = [("ERRAND__DATABASE__URL", url.as_str())];
    let third = parts.server_with(&anew);
    let api = third.api();
    let all = (jobs.len() + others.len()) as u64;
    assert_eq!(rebuilt(&parts, &anew), [("made".to_owned(), all)]);
    let after = everything(&api, &jobs, &others).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(rebuilt(&parts, &anew), [("kept".to_owned(), all)], "again it changes nothing");
    let (status, _) = api.ask(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "what was deleted stays so");
    let batch = api.get(&format!("{BATCHES}/nightly")).await;
    assert_eq!((&batch["received"], &batch["jobs"]), (&json!(1), &json!(1)), "{batch}");

    // They are jobs as any other: they go on, and one that is deleted is not made again.
    for job in &jobs {
        job.at(api.clone()).cancel().await;
    }
    for job in &jobs {
        job.at(api.clone()).ends(SOON).await;
    }
    let path = format!("{JOBS}/{}", jobs[0].name);
    let (status, _) = api.ask(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(rebuilt(&parts, &anew), [("kept".to_owned(), all - 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_made_anew_on_sqlite() {
    records_are_made_anew(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_made_anew_on_postgresql() {
    records_are_made_anew(Database::Postgres).await;
}
