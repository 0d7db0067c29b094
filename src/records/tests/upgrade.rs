//! FC-M: databases of earlier releases. The first five migrations are what release 0.1 had; they
//! and the statements below are frozen.

use std::time::{Duration, Instant};

use sqlx::AnyPool;
use sqlx::any::AnyPoolOptions;
use streams::id::JobId;
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;

use super::job::{fact, listed, snapshot, story};
use super::{postgres, url};
use crate::records::connect::{MIGRATIONS, migrate_to, open_drivers};
use crate::records::*;

/// How many migrations the release had.
const RELEASE: usize = 5;

/// How many there were before the lines of batches were noted.
const BEFORE_BATCH_LINES: usize = 10;

/// Its admission.
const INSERT_JOB: &str =
    "INSERT INTO jobs (id, attempt_id, name, workspace, project, description, source,
             agent_ref, refused, ownership, custom_fields, output_location, created_at, updated_at,
             phase, phase_times, status, start_by, cancel_requested, seen, purged)
         VALUES ($1, $2, $3, $4, NULL, NULL, 'nemo-agents-plugin-execute', NULL, NULL, NULL, NULL,
             NULL, 1800000000000000, 1800000000000000, 'submitted', '{}', 'created', NULL, 0, 0, 0)
         ON CONFLICT DO NOTHING";
const INSERT_INPUTS: &str = "INSERT INTO job_inputs (job, snapshot, request) VALUES ($1, $2, $3)";

/// Its projection, its look at a job, and its sweeper.
const SEEN: &str = "UPDATE jobs SET seen = 1 WHERE deleted_at IS NULL AND id IN ($1)
     RETURNING id, name, workspace, phase, outcome, run, phase_times, running, cancel_requested,
     hold, patched_details";
const STORE: &str =
    "UPDATE jobs SET phase = 'resolved', status = 'pending', outcome = NULL, run = NULL,
     phase_times = '{\"resolved\":\"2027-01-15T08:00:10Z\"}', ended_at = NULL, running = NULL,
     cancel_requested = 0, patched_details = '{}' WHERE id = $1";
const LOOK: &str = "SELECT * FROM jobs LEFT JOIN job_inputs ON job_inputs.job = jobs.id
     WHERE id = $1 AND deleted_at IS NULL";
const UNPUBLISHED: &str = "SELECT * FROM jobs LEFT JOIN job_inputs ON job_inputs.job = jobs.id
     WHERE seen = 0 AND deleted_at IS NULL AND created_at < 1900000000000000 ORDER BY created_at LIMIT 100";

/// Finished jobs, as the release left them.
const MANY: &str =
    "INSERT INTO jobs (id, attempt_id, name, workspace, source, created_at, updated_at, phase,
     phase_times, status, outcome, ended_at, cancel_requested, seen, purged)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
     SELECT 'id-' || n, 'attempt-' || n, 'many-' || n, 'default', 'nemo-agents-plugin-execute',
     1700000000000000 + n, 1700000000000000 + n, 'archived', '{}', 'completed',
     '{\"kind\":\"succeeded\"}', 1700000100000000 + n, 0, 1, 1 FROM numbers";

/// What a hundred thousand jobs may take, on a machine that does much else.
const MIGRATED_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn every_migration_that_is_written_is_applied() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/records/migrations");
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut written: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").file_name().into_string().expect("a name"))
        .collect();
    written.sort();
    let applied = MIGRATIONS.iter().zip(1..).map(|((name, _), n)| format!("{n:04}_{name}.sql"));
    assert!(applied.eq(written.iter().cloned()), "{written:?}");
}

/// A database as the release left it.
async fn released(url: &str) -> AnyPool {
    migrated(url, RELEASE).await
}

/// A database after so many migrations.
async fn migrated(url: &str, migrations: usize) -> AnyPool {
    open_drivers();
    let url = if url.starts_with("sqlite") { format!("{url}?mode=rwc") } else { url.to_owned() };
    let pool = AnyPoolOptions::new().max_connections(1).connect(&url).await.expect("it opens");
    migrate_to(&pool, migrations).await.expect("its tables are made");
    pool
}

async fn admitted(pool: &AnyPool, name: &str) -> JobId {
    let job = JobId::new();
    let id = job.to_string();
    let made = sqlx::query(INSERT_JOB).bind(&id).bind(&id).bind(name).bind("default");
    assert_eq!(made.execute(pool).await.expect("it is admitted").rows_affected(), 1);
    let snapshot = serde_json::to_string(&snapshot(name)).expect("JSON");
    let inputs = sqlx::query(INSERT_INPUTS).bind(&id).bind(snapshot).bind("{}");
    inputs.execute(pool).await.expect("it is kept");
    job
}

/// What the old program does with a job.
async fn works(pool: &AnyPool, job: JobId) {
    for text in [LOOK, SEEN, STORE] {
        let done = sqlx::query(text).bind(job.to_string()).fetch_all(pool).await;
        done.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    sqlx::query(UNPUBLISHED).fetch_all(pool).await.expect("they are listed");
}

/// FC-M1, the records' part: queued, running and finished jobs of the release end under this one.
async fn jobs_of_a_release_end(url: &str) {
    let old = released(url).await;
    let queued = admitted(&old, "queued").await;
    let running = admitted(&old, "running").await;
    let ended = admitted(&old, "ended").await;
    works(&old, running).await;
    old.close().await;

    let records = Records::connect(url).await.expect("it is brought up to date");
    let jobs = records.jobs();
    let whole = story(ended, &Outcome::Succeeded);
    records.project(&whole).await.expect("it is taken in");
    let page = Select::page(Page { page: 1, page_size: 10 }, Sort::NEWEST_FIRST);
    let listed = listed(&records, None, &page).await.items;
    let mut shown: Vec<_> = listed.iter().map(|job| (&*job.name, job.status)).collect();
    shown.sort_unstable_by_key(|(name, _)| *name);
    let expected =
        [("ended", Status::Completed), ("queued", Status::Created), ("running", Status::Pending)];
    assert_eq!(shown, expected);
    assert!(listed.iter().all(|job| job.snapshot.is_some() && job.submission.is_none()));
    let unseen = jobs.due(Duty::Publish, jiff::Timestamp::MAX, None, 10).await.expect("listed");
    assert_eq!(unseen.iter().map(|due| due.id).collect::<Vec<_>>(), [queued]);
    for job in [queued, running] {
        let end = [fact(job, Phase::Archived, &Outcome::Succeeded)];
        records.project(&end).await.expect("it is taken in");
        let job = jobs.by_id(job).await.expect("it answers").expect("it is there");
        assert_eq!(job.status, Status::Completed);
    }
    records.close().await;
}

/// FC-M2: the migration is short, and what the old program says still works.
async fn a_migration_is_short_and_leaves_the_old_program_working(url: &str) {
    let old = released(url).await;
    sqlx::query(MANY).execute(&old).await.expect("they are made");
    let job = admitted(&old, "before").await;
    let begun = Instant::now();
    let records = Records::connect(url).await.expect("it is brought up to date");
    let took = begun.elapsed();
    eprintln!("100,000 jobs were migrated within {took:?}");
    assert!(took < MIGRATED_WITHIN, "{took:?}");
    // The old program has connections of its own, and opens new ones.
    old.close().await;
    let old = released_again(url).await;
    works(&old, job).await;
    let later = admitted(&old, "after").await;
    works(&old, later).await;
    old.close().await;
    for job in [job, later] {
        let read = records.jobs().by_id(job).await.expect("it answers").expect("it is there");
        assert_eq!(read.status, Status::Pending);
    }
    records.close().await;
}

/// A batch whose last line had come was complete, whatever lines had been blank.
async fn batches_are_as_complete_as_they_were(url: &str) {
    let old = migrated(url, BEFORE_BATCH_LINES).await;
    for name in ["whole", "half"] {
        let made = sqlx::query(
            "INSERT INTO batches (id, name, workspace, submission_key, expected,
                 seal_after_seconds, created_at, updated_at)
             VALUES ($1, $1, 'default', $1, 5, 60, 0, 0)",
        );
        made.bind(name).execute(&old).await.expect("it is made");
        for line in [1_i64, if name == "whole" { 5 } else { 3 }] {
            let job = admitted(&old, &format!("{name}-{line}")).await.to_string();
            let of = sqlx::query("UPDATE jobs SET batch = $1, batch_line = $2 WHERE id = $3");
            of.bind(name).bind(line).bind(job).execute(&old).await.expect("it is of the batch");
        }
        let refused = sqlx::query(
            "INSERT INTO batch_refusals (batch, line, http_status, detail, refused_at)
             VALUES ($1, 2, 422, '{}', 0)",
        );
        refused.bind(name).execute(&old).await.expect("it is noted");
    }
    old.close().await;
    let records = Records::connect(url).await.expect("it is brought up to date");
    for (name, received, progress) in
        [("whole", 5, Progress::Complete), ("half", 3, Progress::Incomplete)]
    {
        let batch = records.batches().get("default", name).await.expect("it is there");
        let tally = records.batches().tally(&batch).await.expect("it is counted");
        let late = jiff::Timestamp::MAX;
        assert_eq!((tally.received, tally.progress(&batch, late)), (received, progress), "{name}");
    }
    records.close().await;
}

async fn released_again(url: &str) -> AnyPool {
    AnyPoolOptions::new().max_connections(1).connect(url).await.expect("it opens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m1_jobs_of_the_last_release_end_on_sqlite() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    jobs_of_a_release_end(&url(&directory)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m1_jobs_of_the_last_release_end_on_postgresql() {
    let server = postgres::Server::start();
    jobs_of_a_release_end(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m2_a_hundred_thousand_jobs_are_migrated_on_sqlite() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    a_migration_is_short_and_leaves_the_old_program_working(&url(&directory)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_m2_a_hundred_thousand_jobs_are_migrated_on_postgresql() {
    let server = postgres::Server::start();
    a_migration_is_short_and_leaves_the_old_program_working(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_are_as_complete_as_they_were_on_both_databases() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    batches_are_as_complete_as_they_were(&url(&directory)).await;
    let server = postgres::Server::start();
    batches_are_as_complete_as_they_were(&server.url()).await;
}
