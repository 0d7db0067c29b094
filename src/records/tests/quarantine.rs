//! FC-M4: rows that cannot be read are jobs with an error, and hide no other.

use futures_util::FutureExt;
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;

use super::job::{admit, fact, listed, story};
use super::{postgres, url};
use crate::records::statement::assembled;
use crate::records::*;

/// What somebody wrote into a column by hand.
const DAMAGE: [(&str, &str, &str); 9] = [
    ("job_inputs", "snapshot", "'{\"name\": 1'"),
    ("job_inputs", "snapshot", "'{}'"),
    ("job_inputs", "request", "'no json'"),
    ("jobs", "phase_times", "'{'"),
    ("jobs", "outcome", "'{\"kind\": \"unheard of\"}'"),
    ("jobs", "run", "'[]'"),
    ("jobs", "phase", "'unheard of'"),
    ("jobs", "hold", "''"),
    ("jobs", "start_by", "9223372036854775807"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m4_a_row_that_cannot_be_read_is_a_job_with_an_error_on_sqlite() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    exercise(&url(&directory)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m4_a_row_that_cannot_be_read_is_a_job_with_an_error_on_postgresql() {
    let server = postgres::Server::start();
    exercise(&server.url()).await;
}

async fn exercise(database: &str) {
    let records = &Records::connect(database).await.expect("records open");
    let mut damaged = Vec::new();
    for (n, (table, column, value)) in DAMAGE.into_iter().enumerate() {
        let job = admit(records, &format!("damaged-{n}")).await;
        let key = if table == "jobs" { "id" } else { "job" };
        let text = format!("UPDATE {table} SET {column} = {value} WHERE {key} = $1");
        let write = records.write((text, job.id), |(text, id), db| {
            let id = id.to_string();
            async move { assembled(text.clone()).text(&id).touch(db).await }.boxed()
        });
        write.await.expect("it is written");
        damaged.push((job, column));
    }
    let well = admit(records, "well").await;
    records.close().await;
    let records = &Records::connect(database).await.expect("the service starts");
    let jobs = records.jobs();

    let page = Select::page(Page { page: 1, page_size: 1000 }, Sort::NEWEST_FIRST);
    let listed = listed(records, Some("default"), &page).await.items;
    assert!(listed.contains(&well));
    for (job, column) in &damaged {
        let shown = jobs.get("default", &job.name).await.expect("it is shown");
        assert!(listed.contains(&shown), "{column}");
        assert_eq!((shown.id, shown.status, &shown.snapshot), (job.id, Status::Error, &None));
        let error = shown.error_details.expect("it says why")["error"].to_string();
        assert!(error.contains(column), "{error}");
        assert_eq!(jobs.results(job.id).await.expect("they are listed"), []);
    }
    // Nobody who goes through all of them is held up.
    let cancelled = damaged.iter().map(|(job, _)| job.id);
    let facts = cancelled.map(|job| fact(job, Phase::Resolved, &Outcome::Succeeded));
    let batch: Vec<_> = facts.chain(story(well.id, &Outcome::Succeeded)).collect();
    records.project(&batch).await.expect("the others are taken in");
    let ended = jobs.by_id(well.id).await.expect("it answers").expect("it is there");
    assert_eq!(ended.status, Status::Completed);
    for duty in [Duty::Publish, Duty::Cancel, Duty::Start, Duty::Purge] {
        jobs.due(duty, jiff::Timestamp::MAX, None, 1000).await.expect("they are listed");
    }
    jobs.unfinished(None, 1000).await.expect("they are listed");
    for (job, _) in damaged {
        jobs.tombstone(job.id).await.expect("it can be deleted");
        jobs.forget(job.id).await.expect("it can be deleted");
    }
    records.close().await;
}
