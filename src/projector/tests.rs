//! The projector between a queue in memory and real records.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value, json};
use streams::broker::{Expect, Publication};
use streams::envelope::Envelope;
use streams::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged, Submitted};
use streams::id::{Attempt, JobId};
use streams::memory::Memory;
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;
use streams::snapshot::ObjectRef;
use streams::subject;
use streams::topology::{self, Limits, StreamName};

use super::*;
use crate::records::tests::job::{
    admit, attempts as the_attempts, new_job, run as the_run, saved, second,
};
use crate::records::{Admitted, Job};

struct Projection {
    broker: Memory,
    records: Records,
    hints: BoxStream<'static, ()>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl Projection {
    async fn start() -> Self {
        Self::over(Memory::new(Limits::default()), crate::records::tests::sqlite().await).await
    }

    async fn over(broker: Memory, (records, directory): (Records, tempfile::TempDir)) -> Self {
        let hints = broker.hints("status.>").await.expect("hints come");
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(Arc::new(broker.clone()), records.clone(), stop.clone()));
        Self { broker, records, hints, stop, task, _directory: directory }
    }

    async fn publish(&self, subject: String, payload: Vec<u8>) {
        let publication = Publication {
            subject,
            payload: payload.into(),
            message_id: None,
            expect: Expect::Any,
            traceparent: None,
        };
        self.broker.publish(publication).await.expect("it is stored");
    }

    async fn fact<F: Fact>(&self, job: JobId, fact: F) {
        let at = second(i64::try_from(F::PHASE.rank()).expect("there are few phases"));
        let workspace = "default".to_owned();
        let envelope = Envelope { job, workspace, at, traceparent: None, fact };
        self.publish(envelope.subject(), envelope.encode().expect("it is JSON")).await;
    }

    /// Waits until the world was told by us that the job has reached a phase.
    async fn reached(&mut self, job: JobId, phase: Phase) -> Job {
        let subject = subject::status("default", job);
        let told = async {
            loop {
                let last =
                    self.broker.last(StreamName::Status, &subject).await.expect("it answers");
                let last: Option<StatusMessage> =
                    last.map(|it| serde_json::from_slice(&it.payload).expect("it is a status"));
                if last.is_some_and(|last| last.phase >= phase && status::is_ours(&last)) {
                    break;
                }
                self.hints.next().await.expect("hints go on");
            }
        };
        tokio::time::timeout(Duration::from_secs(20), told).await.expect("it is told in time");
        self.records.jobs().by_id(job).await.expect("it answers").expect("it is there")
    }

    async fn told(&self, job: JobId) -> Vec<StatusMessage> {
        let (subject, mut from) = (subject::status("default", job), 0);
        let mut told = Vec::new();
        let next = async |from| self.broker.next(StreamName::Status, &subject, from).await;
        while let Some(stored) = next(from).await.expect("it answers") {
            told.push(serde_json::from_slice(&stored.payload).expect("it is a status"));
            from = stored.sequence + 1;
        }
        told
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("it ends by itself");
        self.records.close().await;
    }
}

async fn tell(projection: &Projection, job: JobId) {
    let outcome = Outcome::Succeeded;
    projection.fact(job, Submitted { spec: None, name: None, record: None }).await;
    projection.fact(job, Resolved { snapshot: None, outcome: None }).await;
    let input_workdir = Some(saved("input_workdir"));
    projection.fact(job, Staged { input_workdir, ethos: None, outcome: None }).await;
    let results = vec![saved("output_workdir")];
    let attempts = the_attempts();
    let invoked = Invoked { outcome: outcome.clone(), run: Some(the_run()), results, attempts };
    projection.fact(job, invoked).await;
    projection.fact(job, Acted { outcome: outcome.clone(), results: Vec::new() }).await;
    let manifest = ObjectRef { key: "manifest.json".to_owned(), size: 2, sha256: "00".repeat(32) };
    projection.fact(job, Archived { outcome, manifest, logs: None }).await;
}

#[tokio::test]
async fn facts_become_rows_and_news() {
    let mut projection = Projection::start().await;
    let job = admit(&projection.records, "counted").await.id;
    tell(&projection, job).await;
    let row = projection.reached(job, Phase::Archived).await;
    assert_eq!((row.status, row.attempt), (Status::Completed, Some(Attempt(2))));
    assert_eq!(row.attempts, the_attempts());
    let results = projection.records.jobs().results(job).await.expect("they are listed");
    assert_eq!(results.len(), 2);

    let told = projection.told(job).await;
    let last = told.last().expect("something was told");
    assert_eq!((last.status, last.name.as_str()), (Status::Completed, "counted"));
    assert_eq!((&last.details["exit_code"], &last.details["by"]), (&json!(0), &json!("projector")));
    assert!(told.is_sorted_by_key(|message| message.phase), "{told:?}");
    projection.stop().await;
}

/// Whoever had its facts in hand has died, and they come back after half a minute. The job must not
/// look meanwhile as if it had ended and left nothing.
#[tokio::test]
async fn a_last_fact_that_overtakes_others_brings_their_results() {
    let mut projection = Projection::start().await;
    let job = admit(&projection.records, "overtaken").await.id;
    projection.stop.cancel();
    (&mut projection.task).await.expect("it ends by itself");
    tell(&projection, job).await;
    let jobs = topology::projector_consumers().into_iter().find(|it| it.stream == StreamName::Jobs);
    let taken = projection.broker.fetch(&jobs.expect("there is one"), 4).await.expect("it answers");
    assert_eq!(taken.len(), 4, "all but the last");
    taken.into_iter().for_each(std::mem::forget);

    let (broker, records) = (projection.broker.clone(), projection.records.clone());
    let mut projection = Projection::over(broker, (records, projection._directory)).await;
    let row = projection.reached(job, Phase::Archived).await;
    assert_eq!(row.status, Status::Completed);
    let results = projection.records.jobs().results(job).await.expect("they are listed");
    let names: BTreeSet<_> = results.iter().map(|result| result.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["input_workdir", "output_workdir"]));
    projection.stop().await;
}

#[tokio::test]
async fn what_is_no_fact_stops_nothing() {
    let mut projection = Projection::start().await;
    let job = admit(&projection.records, "counted").await.id;
    projection
        .publish(subject::fact(Phase::Resolved, "default", JobId::new()), b"{".to_vec())
        .await;
    projection.publish("jobs.resolved.default.nobody".to_owned(), b"{}".to_vec()).await;
    projection.publish(subject::status("default", job), b"\xff".to_vec()).await;
    projection.fact(job, Resolved { snapshot: None, outcome: None }).await;
    let subject = subject::status("default", job);
    projection.broker.purge(StreamName::Status, &subject).await.expect("it is emptied");
    let row = projection.reached(job, Phase::Resolved).await;
    assert_eq!(row.status, Status::Pending);
    projection.stop().await;
}

#[tokio::test]
async fn a_fact_waits_for_its_record() {
    let mut projection = Projection::start().await;
    let new = new_job("late");
    let job = new.id;
    projection.fact(job, Resolved { snapshot: None, outcome: None }).await;
    let other = admit(&projection.records, "other").await.id;
    projection.fact(other, Resolved { snapshot: None, outcome: None }).await;
    projection.reached(other, Phase::Resolved).await;
    let admitted = projection.records.jobs().admit(new).await.expect("it is answered");
    assert!(matches!(admitted, Admitted::Fresh(_)), "the projector makes no record");
    assert_eq!(projection.reached(job, Phase::Resolved).await.status, Status::Pending);
    projection.stop().await;
}

#[tokio::test]
async fn the_news_of_a_running_agent_are_shown() {
    let projection = Projection::start().await;
    let job = admit(&projection.records, "counted").await;
    let news = StatusMessage {
        v: 1,
        job: job.id,
        workspace: job.workspace.clone(),
        name: job.name.clone(),
        at: second(7),
        status: Status::Active,
        phase: Phase::Staged,
        attempt: Some(Attempt::FIRST),
        code: None,
        message: "Job is running".to_owned(),
        details: Map::from_iter([("turn".to_owned(), json!(40))]),
    };
    let payload = serde_json::to_vec(&news).expect("it is JSON");
    projection.publish(subject::status("default", job.id), payload).await;
    // Both streams are read side by side: the fact may overtake the news.
    projection.fact(job.id, Staged { input_workdir: None, ethos: None, outcome: None }).await;
    let started = async {
        loop {
            let row = projection.records.jobs().by_id(job.id).await.expect("it answers");
            match row.filter(|row| row.started_at.is_some() && row.phase == Phase::Staged) {
                Some(row) => break row,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let row = tokio::time::timeout(Duration::from_secs(20), started).await.expect("it is shown");
    assert_eq!((row.status, row.started_at), (Status::Active, Some(second(7))));
    let expected = json!({"message": "Job is running", "turn": 40});
    assert_eq!(Value::Object(row.status_details), expected);
    projection.stop().await;
}

#[tokio::test]
async fn a_consumer_that_is_made_anew_changes_nothing() {
    let mut projection = Projection::start().await;
    let job = admit(&projection.records, "counted").await.id;
    tell(&projection, job).await;
    let before = projection.reached(job, Phase::Archived).await;
    let told = projection.told(job).await;
    for consumer in streams::topology::projector_consumers() {
        projection.broker.delete_consumer(&consumer);
    }
    // A later fact proves that everything before it was taken in once more.
    let other = admit(&projection.records, "other").await.id;
    projection.fact(other, Resolved { snapshot: None, outcome: None }).await;
    projection.reached(other, Phase::Resolved).await;
    let after = projection.records.jobs().by_id(job).await.expect("it answers");
    assert_eq!(after, Some(before));
    assert_eq!(projection.told(job).await, told);
    projection.stop().await;
}
