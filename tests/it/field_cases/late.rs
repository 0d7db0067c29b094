//! FC-B: reports that come after the end was decided, and what is left of a job that has ended.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use streams::broker::{Broker, Expect};
use streams::claim::Claim;
use streams::envelope::Envelope;
use streams::fact::{Invoked, Produced};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::topology::Bucket;

use crate::harness::{Database, Job, Options, Parts, Platform, Postgres, eventually};

const SOON: Duration = Duration::from_secs(60);

/// The worker is stopped and loses its job, as if its lease had run out and another had taken the
/// job over and ended it: here that other one is the test.
#[tokio::test]
async fn case_b5_a_worker_that_wakes_up_late_changes_nothing() {
    let parts = Parts::on(Database::Sqlite).await;
    let (server, invoke) = (parts.server(), parts.worker("invoke"));
    let others = parts.worker("resolve,stage,act,archive");
    let (api, broker, go) = (server.api(), parts.broker().await, parts.lender.scratch().join("go"));
    let script = format!(
        ": > {0}.on; until [ -e {0} ]; do sleep 0.05; done; echo done; : > {0}.off",
        go.display()
    );
    let job = api.script(&script, json!({})).await;
    let reached = |end: &'static str| {
        let file = go.with_extension(end);
        async move {
            let there = || async { file.is_file().then_some(()) };
            eventually(&format!("the agent is {end}"), SOON, there).await;
        }
    };
    reached("on").await;
    invoke.signal(Signal::STOP);
    assert_eq!(job.cancel().await["status"], "cancelling");
    std::fs::write(&go, "").expect("it is written");
    reached("off").await;

    let key = job.id.to_string();
    let entry = broker.get(Bucket::Claims, &key).await.expect("nats answers").expect("a claim");
    let claim: Claim = serde_json::from_slice(&entry.value).expect("it is JSON");
    let taken = Claim {
        place: "elsewhere".to_owned(),
        worker: "another".to_owned(),
        lost: true,
        done: true,
        ..claim
    };
    let taken = serde_json::to_vec(&taken).expect("it is JSON").into();
    let written = broker.update(Bucket::Claims, &key, taken, entry.revision).await;
    assert!(written.expect("nats answers").is_some());
    let ended = Envelope {
        job: job.id,
        workspace: "default".to_owned(),
        at: Timestamp::now(),
        traceparent: None,
        fact: Invoked::passed_on(Outcome::Cancelled { message: "by another worker".to_owned() }),
    };
    let publication = ended.publication().expect("it is JSON");
    assert_eq!(publication.expect, Expect::Empty);
    broker.publish(publication).await.expect("it is stored");
    job.reaches("cancelled", SOON).await;
    let before = job.facts(&*broker).await;

    invoke.signal(Signal::CONT);
    // Either it saves and its fact is refused, or it hears first that it lost the claim.
    let heard = || async {
        let log = invoke.log();
        [r#""stored":false"#, "taken over"].iter().any(|word| log.contains(word)).then_some(())
    };
    eventually("the late report is refused, and that is recorded", SOON, heard).await;
    assert_eq!(job.status().await, "cancelled");
    assert_eq!(job.facts(&*broker).await, before);
    assert!(!others.log().contains("post-run action"), "{}", others.log());
}

/// The same without another worker: what the agent reports comes after the cancel.
#[tokio::test]
async fn case_b5_a_success_that_is_reported_after_the_cancel_is_none() {
    let parts = Parts::on(Database::Postgres).await;
    let (server, invoke) = (parts.server(), parts.worker("invoke"));
    let others = parts.worker("resolve,stage,act,archive");
    let (api, go) = (server.api(), parts.lender.scratch().join("go"));
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo done", go.display());
    let job = api.script(&script, json!({})).await;
    job.reaches("active", SOON).await;
    invoke.signal(Signal::STOP);
    job.cancel().await;
    std::fs::write(&go, "").expect("it is written");
    invoke.signal(Signal::CONT);
    assert_eq!(job.ends(SOON).await["status"], "cancelled");
    assert!(!others.log().contains("post-run action"), "{}", others.log());
}

async fn nothing_is_left(database: Database) {
    let postgres = (database == Database::Postgres).then(Postgres::start);
    let mut options = Options { slots: 1, ..Options::default() };
    if let Some(postgres) = &postgres {
        options = options.set("database.url", postgres.url());
    }
    let platform = Platform::with(options).await;
    let (api, broker) = (platform.api(), platform.broker().await);
    let action = json!({"kind": "agents.export-files", "config": {"fileset": "nowhere", "paths": ["missing"]}});
    let running = api.script("sleep 600", json!({})).await;
    running.reaches("active", SOON).await;
    let held = api.script("echo never", json!({"queue_timeout_seconds": 3})).await;
    let waiting = api.script("echo never", json!({})).await;
    for job in [&held, &waiting] {
        let pause = format!("/apis/jobs/v2/workspaces/default/jobs/{}/pause", job.name);
        let (status, body) = api.ask(Method::POST, &pause, None).await;
        assert!(status.is_success(), "{status} {body}");
    }
    running.cancel().await;
    waiting.cancel().await;
    let jobs = [
        ("cancelled", running),
        ("cancelled", waiting),
        ("error", held),
        ("completed", api.script("echo done", json!({})).await),
        ("error", api.script("exit 3", json!({})).await),
        ("error", api.script("sleep 600", json!({"timeout_seconds": 1})).await),
        ("error", api.script("sleep 600", json!({"idle_timeout_seconds": 1})).await),
        ("error", api.script("echo done", json!({"post_run_action": action})).await),
    ];
    for (end, job) in &jobs {
        let record = job.ends(SOON).await;
        assert_eq!(&record["status"], end, "{record}");
        is_settled(job, &*broker).await;
        let status = api.get(&format!("{}/{}/status", JOBS, job.name)).await;
        assert_terminal(&status, end);
    }
}

const JOBS: &str = "/apis/jobs/v2/workspaces/default/jobs";

/// Every status in an answer, at any depth, is the end.
#[track_caller]
fn assert_terminal(answer: &Value, end: &str) {
    assert_eq!(answer["status"], end, "{answer}");
    for step in answer["steps"].as_array().expect("steps") {
        assert_eq!(step["status"], end, "{answer}");
        for task in step["tasks"].as_array().expect("tasks") {
            assert_eq!(task["status"], end, "{answer}");
        }
    }
}

/// The claim says so right after the fact stands, hence the wait.
async fn is_settled(job: &Job, broker: &dyn Broker) {
    let key = job.id.to_string();
    let done = || async {
        let claim = broker.get(Bucket::Claims, &key).await.expect("nats answers");
        let is_done = claim.is_none_or(|claim| {
            serde_json::from_slice::<Claim>(&claim.value).expect("it is JSON").done
        });
        let held = broker.get(Bucket::Holds, &key).await.expect("nats answers").is_some();
        (is_done && !held).then_some(())
    };
    eventually("nothing of the job is open", SOON, done).await;
    for (phase, fact) in job.facts(broker).await {
        assert!(fact.is_some(), "no fact {phase}");
    }
    assert_eq!(job.facts(broker).await.len(), Phase::CHAIN.len());
}

#[tokio::test]
async fn case_b9_nothing_of_a_job_that_has_ended_is_open_on_sqlite() {
    nothing_is_left(Database::Sqlite).await;
}

#[tokio::test]
async fn case_b9_nothing_of_a_job_that_has_ended_is_open_on_postgresql() {
    nothing_is_left(Database::Postgres).await;
}
