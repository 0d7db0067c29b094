//! Projection: facts become rows, whatever their order, and never a row of their own.

use proptest::collection::vec;
use proptest::strategy::{Just, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::json;
use streams::id::{Attempt, JobId};
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;

use super::job::{action_failed, admit, fact, run, saved, second, story};
use crate::records::*;

pub(super) async fn exercise(records: &Records) {
    in_order(records).await;
    in_any_order(records).await;
    many_jobs(records).await;
    of_nobody(records).await;
}

async fn in_order(records: &Records) {
    let jobs = records.jobs();
    let job = admit(records, "told").await;
    let mut seen = Vec::new();
    for change in story(job.id, &Outcome::Succeeded) {
        let projected = records.project(&[change]).await.expect("it is taken in");
        assert!(projected.unknown.is_empty());
        let now = jobs.get("default", "told").await.expect("it is found");
        for message in projected.messages {
            assert_eq!((message.status, message.phase), (now.status, now.phase));
            seen.push((message.phase, jobs.results(job.id).await.expect("listed").len()));
        }
    }
    let results = [0, 0, 1, 3, 4, 4];
    assert_eq!(seen, Phase::CHAIN.into_iter().zip(results).collect::<Vec<_>>());

    let ended = jobs.get("default", "told").await.expect("it is found");
    assert_eq!((ended.status, ended.outcome), (Status::Completed, Some(Outcome::Succeeded)));
    assert_eq!((ended.attempt, ended.started_at), (Some(Attempt(2)), Some(run().started_at)));
    assert_eq!(ended.ended_at, Some(second(50)));
    assert_eq!(ended.phase_times.len(), Phase::CHAIN.len());
    assert_eq!(ended.status_details["output_tokens"], 96);
    assert_eq!((ended.created_at, ended.updated_at), (job.created_at, job.updated_at));

    let listed = jobs.results(job.id).await.expect("they are listed");
    let shown: Vec<_> = listed.iter().map(|it| (it.name.as_str(), it.attempt)).collect();
    let second_start = Some(Attempt(2));
    let expected = [
        ("input_workdir", None),
        ("output_workdir", second_start),
        ("report", second_start),
        ("summary", second_start),
    ];
    assert_eq!(shown, expected);
    let report = jobs.result(job.id, "report").await.expect("it is found");
    assert_eq!((report.created_at, report.saved), (second(25), saved("report")));
    assert!(matches!(jobs.result(job.id, "other").await, Err(Error::NotFound)));

    let patch = json!({"message": "kept"});
    jobs.merge_details(job.id, patch.as_object().cloned().expect("an object")).await.expect("kept");
    let patched = jobs.get("default", "told").await.expect("it is found").status_details;
    assert_eq!((&patched["message"], &patched["exit_code"]), (&json!("kept"), &json!(0)));
}

/// The same row and results come of every rotation of the story, backwards too, each twice.
async fn in_any_order(records: &Records) {
    let jobs = records.jobs();
    let end = action_failed();
    let mut expected = None;
    for n in 0..24 {
        let job = admit(records, &format!("order-{n}")).await;
        let mut changes = story(job.id, &end);
        changes.rotate_left(n % 12);
        if n >= 12 {
            changes.reverse();
        }
        for change in changes.iter().chain(&changes) {
            records.project(std::slice::from_ref(change)).await.expect("it is taken in");
        }
        let row = jobs.by_id(job.id).await.expect("the database answers").expect("it is found");
        let results = jobs.results(job.id).await.expect("they are listed");
        let row = (
            row.status,
            row.outcome,
            row.attempt,
            row.attempts,
            row.status_details,
            row.error_details,
            row.started_at,
            row.ended_at,
            row.phase_times,
            results,
        );
        assert_eq!(&row, expected.get_or_insert(row.clone()), "order {n}");
    }
    let (status, outcome, ..) = expected.expect("there were orders");
    assert_eq!((status, outcome), (Status::Error, Some(end)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_in_any_order_and_number_make_one_row_on_sqlite() {
    let (records, _directory) = super::sqlite().await;
    by_chance(&records).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_in_any_order_and_number_make_one_row_on_postgresql() {
    let server = super::postgres::Server::start();
    by_chance(&Records::connect(&server.url()).await.expect("postgres opens")).await;
}

/// The same of orders that chance makes, in batches of any size, each change up to three times.
async fn by_chance(records: &Records) {
    let jobs = records.jobs();
    let mut chance = TestRunner::deterministic();
    let orders = (shuffled(), vec(0..STORY, 0..2 * STORY), 1..6_usize);
    let mut expected = None;
    for n in 0..40 {
        let job = admit(records, &format!("chance-{n}")).await;
        let story = story(job.id, &action_failed());
        assert_eq!(story.len(), STORY);
        let drawn = orders.new_tree(&mut chance).expect("there are orders");
        let (each, again, batch) = drawn.current();
        let order: Vec<_> = [&again[..again.len() / 2], &each, &again[again.len() / 2..]].concat();
        let changes: Vec<_> = order.iter().map(|place| story[*place].clone()).collect();
        for batch in changes.chunks(batch) {
            records.project(batch).await.expect("it is taken in");
        }
        let row = jobs.by_id(job.id).await.expect("the database answers").expect("it is found");
        let results = jobs.results(job.id).await.expect("they are listed");
        let alike = Job { id: JobId::from_uuid(uuid::Uuid::nil()), name: String::new(), ..row };
        let alike = Job { attempt_id: String::new(), spec: None, snapshot: None, ..alike };
        let row = (alike, results);
        assert_eq!(&row, expected.get_or_insert(row.clone()), "order {order:?}");
    }
}

/// The changes of a story.
const STORY: usize = 12;

fn shuffled() -> impl Strategy<Value = Vec<usize>> {
    Just((0..STORY).collect::<Vec<_>>()).prop_shuffle()
}

/// One batch tells the stories of many jobs, each in the order of its phases.
async fn many_jobs(records: &Records) {
    let mut batch = Vec::new();
    for n in 0..20 {
        let job = admit(records, &format!("batch-{n}")).await;
        batch.extend(story(job.id, &Outcome::Succeeded));
    }
    batch.reverse();
    let projected = records.project(&batch).await.expect("it is taken in");
    assert_eq!(projected.messages.len(), 20 * Phase::CHAIN.len());
    for messages in projected.messages.chunk_by(|one, next| one.job == next.job) {
        let phases: Vec<_> = messages.iter().map(|it| it.phase).collect();
        assert_eq!(phases, Phase::CHAIN);
    }
    let again = records.project(&batch).await.expect("it is taken in");
    assert_eq!(again, Projected::default(), "what is known is no news");
    let redelivered: Vec<_> =
        batch.iter().map(|it| Change { redelivered: true, ..it.clone() }).collect();
    let told = records.project(&redelivered).await.expect("it is taken in");
    assert_eq!(told.messages.len(), projected.messages.len(), "it may not have been told");
    assert_eq!(records.project(&[]).await.expect("nothing is done"), Projected::default());
}

async fn of_nobody(records: &Records) {
    let jobs = records.jobs();
    let nobody = JobId::new();
    let job = admit(records, "of-default").await;
    let foreign = Change {
        workspace: "system".to_owned(),
        ..fact(job.id, Phase::Resolved, &Outcome::Succeeded)
    };
    let batch = [fact(nobody, Phase::Resolved, &Outcome::Succeeded), foreign];
    let projected = records.project(&batch).await.expect("it is taken in");
    assert_eq!(projected.unknown, [nobody].into());
    assert_eq!(projected.messages, [], "another workspace has no say");
    assert_eq!(jobs.by_id(nobody).await.expect("the database answers"), None);
    let same = jobs.by_id(job.id).await.expect("the database answers").expect("it is there");
    assert_eq!((same.phase, same.phase_times), (Phase::Submitted, job.phase_times));
}
