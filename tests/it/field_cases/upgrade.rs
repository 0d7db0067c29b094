//! FC-M1: a database and a stream as the last release left them; under this one every job ends.
//!
//! The release had the first five migrations. Its rows, and its facts with fields that nobody
//! knows, are written here in its own words.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use streams::broker::{Broker, Expect, Publication};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;

use crate::harness::{Api, Database, Job, Parts};

const SOON: Duration = Duration::from_secs(120);

/// Makes a database of the release with the jobs in a file of JSON.
const RELEASE: &str = r#"
import hashlib, json, sqlite3, sys
path, folder, jobs = sys.argv[1:]
steps = ["0001_records", "0002_environments", "0003_filters", "0004_holds", "0005_start_by"]
db = sqlite3.connect(path)
db.execute("""CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY,
    description TEXT NOT NULL, installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL, checksum BLOB NOT NULL, execution_time BIGINT NOT NULL)""")
for number, step in enumerate(steps, 1):
    text = open(f"{folder}/{step}.sql").read()
    db.executescript(text)
    db.execute("""INSERT INTO _sqlx_migrations (version, description, success, checksum,
        execution_time) VALUES (?, ?, 1, ?, 0)""",
        (number, step[5:], hashlib.sha384(text.encode()).digest()))
db.execute("INSERT INTO workspaces VALUES ('workspace-1', 'default', NULL, 1, 1)")
for job in json.load(open(jobs)):
    db.execute("""INSERT INTO jobs (id, attempt_id, name, workspace, source, created_at,
        updated_at, phase, phase_times, status, outcome, ended_at, cancel_requested, seen, purged)
        VALUES (:id, 'attempt-' || :id, :name, 'default', 'nemo-agents-plugin-execute',
        1764500000000000, 1764500000000000, :phase, '{}', :status, :outcome, :ended_at, 0, :seen,
        0)""", job)
    db.execute("INSERT INTO job_inputs VALUES (:id, :snapshot, '{}')", job)
db.commit()
"#;

/// What a job of this release runs with, without all that later releases may leave out.
async fn snapshot(parts: &Parts) -> Value {
    let mut spec = json!({"input": ""});
    spec["agent"] = json!({
        "config_format": "nemo-agents-spec-v1",
        "config": {
            "config_format": "nemo-agents-spec-v1",
            "name": "old",
            "default_harness": "script",
            "harnesses": {
                "script": {"kind": "script", "settings": {"command": ["/bin/echo", "done"]}},
            },
        },
    });
    let job = parts.lender.api().submit(spec).await;
    job.ends(SOON).await;
    let resolved = subject::fact(Phase::Resolved, "default", job.id);
    let stored = parts.lender.broker().await.last(StreamName::Jobs, &resolved).await;
    let stored = stored.expect("nats answers").expect("it was resolved");
    let mut fact: Value = serde_json::from_slice(&stored.payload).expect("JSON");
    let mut snapshot = fact["snapshot"]["inline"].take();
    let fields = snapshot.as_object_mut().expect("it is small");
    for later in ["image", "resources", "queue_limit", "idle_timeout_seconds"] {
        fields.remove(later);
    }
    snapshot
}

async fn publish(broker: &dyn Broker, phase: Phase, job: JobId, mut fact: Value) {
    fact["v"] = json!(1);
    fact["of_a_release_that_knew_more"] = json!({"than": "this"});
    let publication = Publication {
        subject: subject::fact(phase, "default", job),
        payload: fact.to_string().into(),
        message_id: None,
        expect: Expect::Empty,
        traceparent: None,
    };
    broker.publish(publication).await.expect("it is stored");
}

fn make(database: &Path, jobs: &Value) {
    let list = database.with_extension("json");
    std::fs::write(&list, jobs.to_string()).expect("it is written");
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/records/migrations");
    let mut python = Command::new("python3");
    python.args(["-c", RELEASE]).arg(database).arg(migrations).arg(list);
    let made = python.output().expect("python3 runs");
    assert!(made.status.success(), "{made:?}");
}

async fn job(api: &Api, id: JobId) -> Job {
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}", id.http());
    Job::new(api.clone(), &api.get(&path).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m1_jobs_of_the_last_release_end_whatever_they_had_come_to() {
    let parts = Parts::on(Database::Sqlite).await;
    let broker = parts.broker().await;
    let snapshot = snapshot(&parts).await;
    let ids: [JobId; 3] = std::array::from_fn(|_| JobId::new());
    let row = |n: usize, name: &str, phase: &str, status: &str, seen: u8| {
        let mut snapshot = snapshot.clone();
        snapshot["name"] = json!(name);
        let (mut outcome, mut ended_at) = (Value::Null, Value::Null);
        if phase == "archived" {
            outcome = json!(r#"{"kind":"succeeded"}"#);
            ended_at = json!(1_764_500_100_000_000_u64);
        }
        json!({
            "id": ids[n], "name": name, "phase": phase, "status": status, "seen": seen,
            "outcome": outcome, "ended_at": ended_at, "snapshot": snapshot.to_string(),
        })
    };
    let jobs = json!([
        row(0, "queued", "submitted", "created", 0),
        row(1, "on-its-way", "resolved", "pending", 1),
        row(2, "ended", "archived", "completed", 1),
    ]);
    make(&parts.data().join("errand.db"), &jobs);
    let name = json!({"name": "on-its-way"});
    publish(&*broker, Phase::Submitted, ids[1], name).await;
    let mut own = snapshot.clone();
    own["name"] = json!("on-its-way");
    let (at, workspace) = ("2025-11-30T10:53:20Z", "default");
    let resolved =
        json!({"job": ids[1], "workspace": workspace, "at": at, "snapshot": {"inline": own}});
    publish(&*broker, Phase::Resolved, ids[1], resolved).await;

    let server = parts.server();
    let _worker = parts.worker("resolve,stage,invoke,act,archive");
    let api = server.api();
    for id in ids {
        assert_eq!(job(&api, id).await.ends(SOON).await["status"], "completed");
    }
    for id in [ids[0], ids[1]] {
        let job = job(&api, id).await;
        assert_eq!(job.json("fabric_run_result").await["response"], "done");
        let facts = job.facts(&*broker).await;
        assert!(facts.iter().all(|(_, fact)| fact.is_some()), "six facts, as of every job");
    }
}
