//! FC-D2: records that say that their jobs run, of which the queue knows nothing any more.

use std::time::{Duration, Instant};

use errand::records::{Change, NewJob, News, Proof, Records};
use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::broker::Broker;
use streams::id::{Attempt, JobId};
use streams::phase::{Phase, StepName};
use streams::topology::{StreamName, step_consumer};

use crate::harness::{Api, Database, Parts, eventually};

const SOON: Duration = Duration::from_secs(120);
const LATER: Duration = Duration::from_secs(300);

/// How many of the jobs are looked at until their very end.
const TO_THE_END: u64 = 100;

fn running(n: usize) -> (NewJob, [Change; 2]) {
    let (id, name) = (JobId::new(), format!("stale-{n}"));
    let agent = json!({"name": "a", "workspace": "default", "config": {}, "config_format": "f"});
    let spec = json!({
        "request": {}, "agent": agent, "workdir": null, "compute": null, "secrets": {},
        "post_run_action": {"kind": "agents.noop"},
    });
    let snapshot = json!({
        "name": name, "input": "", "context": {}, "timeout_seconds": 60.0, "max_attempts": 3,
        "spec": spec, "base": null, "mounts": [], "ethos": null,
    });
    let at = Timestamp::now();
    let new = NewJob {
        id,
        name,
        workspace: "default".to_owned(),
        project: None,
        description: None,
        source: "nemo-agents-plugin-execute".to_owned(),
        snapshot: Ok(serde_json::from_value(snapshot).expect("it is a snapshot")),
        request: Value::Null,
        agent_ref: None,
        ownership: None,
        custom_fields: None,
        output_location: None,
        submission: None,
        rerun_of: None,
        batch: None,
        created_at: at,
    };
    let proof = Proof {
        phase: Phase::Staged,
        outcome: None,
        run: None,
        attempts: Vec::new(),
        results: Vec::new(),
    };
    let started = News::Running { attempt: Attempt::FIRST, details: Map::new() };
    let changes = [News::Fact(proof), started].map(|news| {
        let workspace = "default".to_owned();
        Change { job: id, workspace, at, redelivered: false, news }
    });
    (new, changes)
}

async fn record_many(records: &Records, many: usize) {
    let numbers: Vec<_> = (0..many).collect();
    for some in numbers.chunks(250) {
        let (new, changes): (Vec<_>, Vec<_>) = some.iter().map(|n| running(*n)).unzip();
        let jobs = records.jobs();
        try_join_all(new.into_iter().map(|new| jobs.admit(new))).await.expect("admitted");
        let changes: Vec<_> = changes.into_iter().flatten().collect();
        records.project(&changes).await.expect("it is taken in");
    }
}

/// How many of the jobs on their way are known to have been given up.
async fn given_up(records: &Records) -> usize {
    let (mut after, mut count) = (None, 0);
    loop {
        let (jobs, next) = records.jobs().unfinished(after, 1000).await.expect("listed");
        count += jobs.iter().filter(|job| job.phase == Phase::Invoked).count();
        after = next;
        if after.is_none() {
            return count;
        }
    }
}

async fn with_status(api: &Api, status: &str) -> u64 {
    let path = format!("/apis/jobs/v2/workspaces/default/jobs?filter[status]={status}&page_size=1");
    api.get(&path).await["pagination"]["total_results"].as_u64().expect("a number")
}

/// So many jobs that run by their records all end.
async fn all_end(database: Database, many: usize) {
    let parts = Parts::on(database).await;
    let records = Records::connect(&parts.database_url()).await.expect("records open");
    record_many(&records, many).await;
    let server = parts.server();
    let api = server.api();
    assert_eq!(with_status(&api, "active").await, many as u64);
    let begun = Instant::now();
    let all = || async { (given_up(&records).await == many).then_some(()) };
    eventually("all of them are given up", LATER, all).await;
    eprintln!("{many} jobs without facts were given up within {:?}", begun.elapsed());

    // None was started, with attempts left or without, and each comes to its end.
    let _worker = parts.worker("resolve,stage,invoke,act,archive");
    let fresh = api.script("echo done", json!({})).await;
    let some = || async { (with_status(&api, "error").await >= TO_THE_END).then_some(()) };
    eventually("they end", LATER, some).await;
    let path = "/apis/jobs/v2/workspaces/default/jobs?filter[status]=error&page_size=100";
    let ended = api.get(path).await;
    for job in ended["data"].as_array().expect("a list") {
        assert_eq!(job["status_details"]["code"], "worker_lost", "{job}");
        assert_eq!(job["error_details"]["code"], "worker_lost", "{job}");
    }
    // Those that are new are not starved by so many that end: they run, and end in their turn.
    fresh.reaches_phase(Phase::Invoked, LATER).await;
    records.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_d2_ten_thousand_jobs_without_facts_end_on_sqlite() {
    all_end(Database::Sqlite, 10_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_d2_a_thousand_jobs_without_facts_end_on_postgresql() {
    all_end(Database::Postgres, 1000).await;
}

/// Nobody but the sweeper knows of the workspace any more: its consumer is gone, and the worker
/// that comes has never heard of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_d2_a_job_whose_consumer_vanished_is_brought_to_a_worker() {
    let parts = Parts::on(Database::Sqlite).await;
    let server = parts.server();
    let early = parts.worker("resolve,stage");
    let job = server.api().script("echo done", json!({})).await;
    job.reaches_phase(Phase::Staged, SOON).await;
    early.stop().await;
    server.stop().await;
    let broker = parts.broker().await;
    let consumer = step_consumer(StepName::Invoke, "default");
    broker.remove_consumer(&consumer).await.expect("it can be removed");

    let _worker = parts.worker("invoke,act,archive");
    let server = parts.server();
    let job = job.at(server.api());
    assert_eq!(job.ends(LATER).await["status"], "completed");
    let names = broker.consumers(StreamName::Jobs).await.expect("the stream answers");
    assert!(names.contains(&consumer.name), "{names:?}");
}
