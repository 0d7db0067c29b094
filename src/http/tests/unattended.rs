//! FC-D8: a running job is cancelled, and no worker is left.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use streams::broker::{Expect, Publication};
use streams::claim::{self, Claim};
use streams::envelope::Envelope;
use streams::fact::{Fact, Resolved, Staged};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, StreamName};
use tokio_util::sync::CancellationToken;

use super::harness::Harness;
use super::{AGENTS, JOBS, agent};
use crate::config::Retention;
use crate::sweeper::Sweeper;

async fn fact<F: Fact>(api: &Harness, job: JobId, fact: F) {
    let (workspace, at) = ("default".to_owned(), Timestamp::now());
    let envelope = Envelope { job, workspace, at, traceparent: None, fact };
    let publication = envelope.publication().expect("it is JSON");
    api.broker.publish(publication).await.expect("it is stored");
}

/// A job whose agent was started by a worker of another place, which nobody has heard of since.
async fn started_and_abandoned(api: &Harness) -> JobId {
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let body = json!({"spec": {"agent": "calc", "input": "x"}, "name": "abandoned"});
    let made = api.post(&format!("{AGENTS}/jobs/execute"), body).await.body;
    let job: JobId = made["id"].as_str().expect("text").parse().expect("an id");
    fact(api, job, Resolved { snapshot: None, outcome: None }).await;
    fact(api, job, Staged { input_workdir: None, ethos: None, outcome: None }).await;
    let claim = Claim { started: true, ..Claim::new("elsewhere", "gone") };
    let claim = serde_json::to_vec(&claim).expect("it is JSON").into();
    let made = api.broker.create(Bucket::Claims, &claim::agent_key(job), claim).await;
    assert!(made.expect("the queue answers").is_some());
    let news = json!({
        "v": 1, "job": job, "workspace": "default", "name": "abandoned", "at": Timestamp::now(),
        "status": "active", "phase": "staged", "attempt": 1, "message": "Job is running",
    });
    let news = Publication {
        subject: subject::status("default", job),
        payload: news.to_string().into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    api.broker.publish(news).await.expect("it is stored");
    job
}

async fn reaches(api: &Harness, status: &str) {
    let reached = async {
        while api.get(&format!("{JOBS}/abandoned/status")).await.body["status"] != status {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(90), reached).await;
    reached.unwrap_or_else(|_| panic!("the job is never {status}"));
}

async fn ends_without_workers(api: Harness) {
    let stop = CancellationToken::new();
    let projector =
        crate::projector::run(Arc::clone(&api.broker), api.records.clone(), stop.clone());
    let sweeper = Sweeper {
        records: api.records.clone(),
        broker: Arc::clone(&api.broker),
        store: api.store.clone(),
        retention: Retention::default(),
        lost_after: Duration::from_secs(2),
    };
    let keepers = [
        tokio::spawn(projector),
        tokio::spawn({
            let stop = stop.clone();
            sweeper.run(stop)
        }),
    ];
    let job = started_and_abandoned(&api).await;
    reaches(&api, "active").await;
    let cancelled = api.post(&format!("{JOBS}/abandoned/cancel"), json!({})).await;
    assert_eq!(cancelled.body["status"], "cancelling", "it is not for the API to end it");
    reaches(&api, "cancelled").await;

    for phase in Phase::CHAIN {
        let subject = subject::fact(phase, "default", job);
        let stands = api.broker.last(StreamName::of(phase), &subject).await;
        assert!(stands.expect("the queue answers").is_some(), "{phase}");
    }
    let claim = api.broker.get(Bucket::Claims, &claim::agent_key(job)).await;
    let claim = claim.expect("the queue answers").expect("it is kept");
    let claim: Claim = serde_json::from_slice(&claim.value).expect("it is a claim");
    assert!(claim.settled && claim.lost && claim.started, "{claim:?}");
    stop.cancel();
    for keeper in keepers {
        keeper.await.expect("it ends by itself");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_d8_a_cancelled_job_whose_worker_is_gone_is_ended_by_the_control_plane() {
    let [sqlite, postgres] = Harness::start_both().await;
    tokio::join!(ends_without_workers(sqlite), ends_without_workers(postgres));
}
