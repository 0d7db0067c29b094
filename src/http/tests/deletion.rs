//! Deletions that were broken off: whatever was done of one, doing it again ends it.

use std::sync::Arc;

use streams::broker::{Expect, Publication};
use streams::claim;
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::Source;
use streams::subject;
use streams::topology::{Bucket, StreamName};
use workers::store::{Sums, key};

use super::JOBS;
use super::harness::Harness;
use crate::records::tests::job::{admit, new_job, snapshot, story};
use crate::records::{Admitted, Duty};
use crate::removal;

/// Where a job has messages.
fn subjects(job: JobId) -> Vec<(StreamName, String)> {
    let facts =
        Phase::CHAIN.map(|phase| (StreamName::of(phase), subject::fact(phase, "default", job)));
    let others = [
        (StreamName::Logs, subject::logs("default", job)),
        (StreamName::Status, subject::status("default", job)),
    ];
    facts.into_iter().chain(others).collect()
}

fn objects(job: JobId) -> [String; 3] {
    let place = ("default", job);
    [key::manifest(place.0, job), key::logs(place.0, job), key::last_fact(place.0, job)]
}

/// A finished job with all that jobs leave.
async fn finished(api: &Harness, name: &str) -> JobId {
    let job = admit(&api.records, name).await.id;
    api.records.project(&story(job, &Outcome::Succeeded)).await.expect("it is taken in");
    for (_, subject) in subjects(job) {
        let (payload, message_id) = (b"{}".as_slice().into(), None);
        let expect = Expect::Any;
        let message = Publication { subject, payload, message_id, expect, traceparent: None };
        api.broker.publish(message).await.expect("it is stored");
    }
    for (bucket, key) in keys(job) {
        api.broker.create(bucket, &key, b"{}".as_slice().into()).await.expect("it is stored");
    }
    for key in objects(job) {
        api.store.put(&key, b"{}".as_slice().into()).await.expect("it is stored");
    }
    job
}

fn keys(job: JobId) -> Vec<(Bucket, String)> {
    let keys = Bucket::ALL.map(|bucket| (bucket, job.to_string()));
    keys.into_iter().chain([(Bucket::Claims, claim::action_key(job))]).collect()
}

/// So many steps of a deletion, in its order; says whether there was one more.
async fn begun(api: &Harness, job: JobId, mut steps: usize) -> bool {
    let mut go_on = || {
        let more = steps > 0;
        steps = steps.saturating_sub(1);
        more
    };
    if !go_on() {
        return true;
    }
    api.records.jobs().tombstone(job).await.expect("it is hidden");
    for (stream, subject) in subjects(job) {
        if !go_on() {
            return true;
        }
        api.broker.purge(stream, &subject).await.expect("it is purged");
    }
    for (bucket, key) in keys(job) {
        if !go_on() {
            return true;
        }
        api.broker.remove(bucket, &key).await.expect("it is removed");
    }
    for key in objects(job) {
        if !go_on() {
            return true;
        }
        api.store.delete(&key).await.expect("it is removed");
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_another_starts_from_is_not_deleted_before_that_is_staged() {
    for api in Harness::start_both().await {
        let first = finished(&api, "first").await;
        let other = finished(&api, "other").await;
        let mut pinned = snapshot("next");
        let object = Sums::of(b"x").object(&key::input("default", first, "output_workdir"));
        pinned.base = Some(Source::Bundle { object, path: String::new() });
        let next = crate::records::NewJob { snapshot: Ok(pinned), ..new_job("next") };
        let id = next.id;
        api.records.jobs().admit(next).await.expect("it is admitted");
        let delete = async |name: &str| api.send("DELETE", &format!("{JOBS}/{name}"), None).await;
        let refused = delete("first").await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.to_string().contains("job 'next'"), "{}", refused.body);
        assert!(
            api.store.find(&key::manifest("default", first)).await.expect("it tells").is_some()
        );
        let mut mentions = snapshot("mentions");
        mentions.input = format!("see jobs/default/{other}/manifest.json");
        let mentions = crate::records::NewJob { snapshot: Ok(mentions), ..new_job("mentions") };
        api.records.jobs().admit(mentions).await.expect("it is admitted");
        delete("other").await.status_is(204);
        api.records.project(&story(id, &Outcome::Succeeded)).await.expect("it is taken in");
        delete("first").await.status_is(204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_to_a_deleted_job_is_removed_later() {
    for api in Harness::start_both().await {
        let [gone, other, kept] = ["gone", "other", "kept"].map(|name| finished(&api, name));
        let [gone, other, kept] = [gone.await, other.await, kept.await];
        for job in [gone, other] {
            let broker = Arc::clone(&api.broker);
            let removed = removal::remove(&api.records, &api.store, &*broker, "default", job);
            removed.await.expect("it is removed");
        }
        let before = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
        let look = async |since| {
            crate::sweeper::deleted::look(&api.records, &api.store, since).await.expect("it looks")
        };
        assert_eq!(look(before).await, 0);
        let late = format!("{}input/input_workdir.tar.gz", key::job("default", gone));
        api.store.put(&late, b"late".as_slice().into()).await.expect("it is stored");
        assert_eq!(look(jiff::Timestamp::now()).await, 0, "it was deleted before that");
        assert_eq!(look(before).await, 1);
        assert!(api.store.find(&late).await.expect("the store answers").is_none());
        for key in objects(kept) {
            assert!(api.store.find(&key).await.expect("the store answers").is_some(), "{key}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_was_broken_off_anywhere_is_ended() {
    for api in Harness::start_both().await {
        let mut steps = 0;
        loop {
            let job = finished(&api, &format!("gone-{steps}")).await;
            let more = begun(&api, job, steps).await;
            let jobs = api.records.jobs();
            let hidden = jobs.due(Duty::Delete, jiff::Timestamp::MAX, None, 10).await;
            let hidden: Vec<_> =
                hidden.expect("they are listed").into_iter().map(|due| due.id).collect();
            assert_eq!(hidden, if steps > 0 { vec![job] } else { vec![] }, "the sweeper sees it");

            let broker = Arc::clone(&api.broker);
            removal::remove(&api.records, &api.store, &*broker, "default", job)
                .await
                .unwrap_or_else(|error| panic!("after {steps} steps: {error}"));
            for (stream, subject) in subjects(job) {
                let last = api.broker.last(stream, &subject).await.expect("the queue answers");
                assert!(last.is_none(), "{subject} after {steps} steps");
            }
            for (bucket, key) in keys(job) {
                let entry = api.broker.get(bucket, &key).await.expect("the queue answers");
                assert!(entry.is_none(), "{key} after {steps} steps");
            }
            for key in objects(job) {
                let object = api.store.find(&key).await.expect("the store answers");
                assert!(object.is_none(), "{key} after {steps} steps");
            }
            assert_eq!(jobs.by_id(job).await.expect("records answer"), None);
            let again = crate::records::NewJob { id: job, ..new_job("again") };
            assert_eq!(jobs.admit(again).await.expect("it is answered"), Admitted::Deleted);
            steps += 1;
            if !more {
                break;
            }
        }
        assert!(steps > 16, "{steps} steps");
    }
}
