//! Cancelling: what is told, and what comes of a server that dies over it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use streams::broker::Stored;
use streams::claim::Decision;
use streams::envelope::Envelope;
use streams::fact::Invoked;
use streams::id::{Attempt, JobId};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;
use tokio_util::sync::CancellationToken;
use workers::claims::Claims;
use workers::ends::Ends;
use workers::executor::process::Process;
use workers::holds::Holds;
use workers::logs::LogSink;
use workers::patience::Patience;
use workers::runtime::{self, Steps};
use workers::seats::{self, Seats};
use workers::status::StatusFeed;
use workers::steps::{Invoke, Resolve, RunSettings, Stage};

use super::harness::Harness;
use super::{AGENTS, JOBS, agent};
use crate::catalog::Settings;
use crate::secrets::{Keyring, SecretStore};

const IN_TIME: Duration = Duration::from_secs(20);

/// Submits the job `run-1`.
async fn submit(api: &Harness) -> JobId {
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let request = json!({"spec": {"agent": "calc", "input": "x"}, "name": "run-1"});
    let made = api.post(&format!("{AGENTS}/jobs/execute"), request).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body["id"].as_str().expect("text").parse().expect("an id")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_told_to_the_world() {
    let api = Harness::start().await;
    let job = submit(&api).await;
    let subject = subject::status("default", job);
    for _ in 0..2 {
        let cancelled = api.post(&format!("{JOBS}/run-1/cancel"), json!({})).await;
        assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelling")));
        let stored = api.broker.last(StreamName::Status, &subject).await;
        let stored = stored.expect("the queue answers").expect("it is told");
        let told: Value = serde_json::from_slice(&stored.payload).expect("it is JSON");
        assert_eq!((&told["status"], &told["phase"]), (&json!("cancelling"), &json!("submitted")));
        assert_eq!((&told["name"], &told["details"]["by"]), (&json!("run-1"), &json!("api")));
        let after = api.broker.next(StreamName::Status, &subject, 0).await;
        assert_eq!(after.expect("the queue answers"), Some(stored), "it is told once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_attempt_is_called_what_the_agent_is_told() {
    let api = Harness::start().await;
    let job = submit(&api).await;
    let attempt = job.attempt_id(Attempt::FIRST);
    for path in ["run-1", "run-1/steps/execute-agent"] {
        let shown = api.get(&format!("{JOBS}/{path}")).await.body;
        assert_eq!(shown["attempt_id"], attempt.as_str(), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_was_decided_and_not_recorded_ends_the_job() {
    let api = Harness::start().await;
    let job = submit(&api).await;
    let stop = CancellationToken::new();
    let (broker, store) = (api.broker.clone(), api.store.clone());
    let resolve = Resolve { catalog: Arc::new(api.catalog.clone()), store: store.clone() };
    let ends = Ends::new(broker.clone());
    let (patience, budget) = (Patience::default(), Patience::default());
    let stage = Stage { store, ends: ends.clone(), patience, budget };
    let steps = Steps { resolve: Some(resolve), stage: Some(stage), ..Default::default() };
    let early = tokio::spawn(runtime::run(broker.clone(), steps, stop.clone()));
    fact(&api, Phase::Staged, job).await;

    // As the API does first; then the server dies.
    let decided = ends.decide(job, Decision::Cancel, "api").await.expect("the queue answers");
    assert_eq!(decided, Decision::Cancel);
    let directory = tempfile::tempdir().expect("a directory");
    let steps = Steps { invoke: Some((invoke(&api, directory.path()), 1)), ..Default::default() };
    let late = tokio::spawn(runtime::run(broker, steps, stop.clone()));
    let stored = fact(&api, Phase::Invoked, job).await;
    let invoked = Envelope::<Invoked>::decode(&stored.subject, &stored.payload, stored.at);
    let invoked = invoked.expect("it is a fact").fact;
    assert!(matches!(invoked.outcome, Outcome::Cancelled { .. }), "{invoked:?}");
    assert_eq!(invoked.run, None, "no agent was started");
    stop.cancel();
    early.await.expect("it ends by itself");
    late.await.expect("it ends by itself");
}

/// Waits for the fact of a phase.
async fn fact(api: &Harness, phase: Phase, job: JobId) -> Stored {
    let subject = subject::fact(phase, "default", job);
    let mut hints = api.broker.hints(&subject).await.expect("hints come");
    let there = async {
        loop {
            let last = api.broker.last(StreamName::of(phase), &subject).await;
            if let Some(stored) = last.expect("the queue answers") {
                return stored;
            }
            hints.next().await.expect("hints go on");
        }
    };
    tokio::time::timeout(IN_TIME, there).await.expect("it comes in time")
}

/// The step, with an executor that has no runner: it must not start one.
fn invoke(api: &Harness, directory: &std::path::Path) -> Invoke {
    let (broker, store) = (|| api.broker.clone(), api.store.clone());
    let lost_after = Duration::from_secs(900);
    let claims = Claims::new(broker(), "here".to_owned(), directory.join("workers"), lost_after);
    let keyring = Keyring::open(&directory.join("key")).expect("a key");
    let runner = directory.join("no-runner");
    let executor = Process::new(directory.join("runs"), runner, store.clone());
    Invoke {
        claims: claims.expect("a directory for locks"),
        ends: Ends::new(broker()),
        holds: Holds::new(broker()),
        seats: Seats::new(broker(), seats::Limits::default()),
        executor: Arc::new(executor.expect("a directory for runs")),
        actions: Arc::clone(&Settings::default().actions),
        secrets: Arc::new(SecretStore::new(api.records.clone(), keyring)),
        logs: LogSink::new(broker(), store.clone()),
        store,
        status: StatusFeed::new(broker()),
        settings: RunSettings {
            grace: Duration::from_secs(1),
            adapter_dirs: Vec::new(),
            python: None,
            output_limit_bytes: 1024,
        },
        patience: Patience::default(),
        saving: Patience::default(),
    }
}
