//! Workspaces have their turns, however many jobs one of them has.

use std::fs;

use super::{LATER, Workspace, phase_at, started_at};
use crate::harness::{Options, Platform, eventually};

/// Jobs of the workspace that has many; `ERRAND_FAIR_JOBS` has others.
fn many(default: usize) -> usize {
    let said = std::env::var("ERRAND_FAIR_JOBS").ok();
    said.map_or(default, |said| said.parse().expect("ERRAND_FAIR_JOBS is a number"))
}

/// Of two workspaces with many and with ten jobs, and one slot: the last of the ten has ended when
/// the other has ended one in twenty.
#[tokio::test]
async fn a_small_workspace_is_done_before_five_percent_of_a_large_one() {
    let (many, few) = (many(300), 10);
    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    let large = Workspace::new(platform.api(), "large").await;
    let small = Workspace::new(platform.api(), "small").await;
    let go = platform.scratch().join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    let first = large.submit("first", &["/bin/sh", "-c", &waits]).await;
    large.reaches(&first, "active").await;
    large.submit_many(many, 1, &["true"]).await;
    let jobs = small.submit_many(few, 1, &["true"]).await;
    for job in &jobs {
        small.is_at(job, "staged").await;
    }
    fs::write(&go, "").expect("it is written");
    let all = || async { (small.count("completed").await == few as u64).then_some(()) };
    eventually("the small workspace is done", LATER, all).await;
    // With one slot, what has begun before the last of them has ended before it. When an end is
    // archived is no matter of turns.
    let last = small.begun().await.iter().map(started_at).max().expect("there are some");
    let large = large.begun().await;
    let done = large.iter().filter(|job| started_at(job) < last).count();
    println!("{few} jobs are done, and {done} of {many} in the other workspace");
    assert!(done * 20 < many, "{done} of {many}");
}

/// A workspace has two slots full and many more jobs; then one of another workspace comes.
async fn begins_within_two_job_lengths(agents: usize) {
    let platform = Platform::start().await;
    let (slots, many) = (2, many(24));
    let first = Workspace::new(platform.api(), "first").await;
    let other = Workspace::new(platform.api(), "other").await;
    let jobs = first.submit_many(many, agents, &["sleep", "1"]).await;
    let full = || async { (first.count("active").await == slots).then_some(()) };
    eventually("both slots are in use", LATER, full).await;
    let one = other.submit("one", &["true"]).await;
    let one = other.reaches(&one, "completed").await;
    let (staged, started) = (phase_at(&one, "staged"), started_at(&one));
    let mut between = 0;
    for job in &jobs {
        let record = first.record(job).await;
        let began = record["attempts"][0]["started_at"].is_string();
        between += u64::from(began && (staged..started).contains(&started_at(&record)));
    }
    // In two job lengths each slot is given away twice.
    assert!(between <= 2 * slots, "{between} jobs were begun with before it");
    assert!(first.count("completed").await < many as u64, "it did not wait for all of them");
}

#[tokio::test]
async fn case_n1_one_job_begins_within_two_job_lengths_of_another_workspaces_many() {
    begins_within_two_job_lengths(1).await;
}

/// Turns are those of workspaces, not of agents.
#[tokio::test]
async fn case_n2_it_does_so_however_many_agents_the_other_workspace_has() {
    begins_within_two_job_lengths(100).await;
}
