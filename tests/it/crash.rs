//! The crash table: every process of the platform is killed at a named point, and the job still
//! ends truthfully, its agent having run once.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Job, Options, Platform, eventually};

/// The queue gives an unsettled delivery back after 30 s.
const LATER: Duration = Duration::from_secs(90);

/// An agent that says in a file outside that it runs, writes some lines, and takes a while.
fn agent(runs: &Path, seconds: u32) -> String {
    format!(
        "echo run >> {}; for i in $(seq 1 200); do echo line $i; done; sleep {seconds}; \
         echo last; echo out > out.txt",
        runs.display()
    )
}

/// What must hold of a job that completed, whatever was killed in between.
async fn ran_once(platform: &Platform, job: &Job, runs: &Path) {
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}\n{}", platform.log());
    assert_eq!(fs::read_to_string(runs).expect("the agent ran"), "run\n", "the agent ran once");
    let lines: Vec<_> = job
        .log()
        .await
        .into_iter()
        .filter(|line| line.starts_with("line ") || line == "last")
        .collect();
    let mut wanted: Vec<_> = (1..=200).map(|n| format!("line {n}")).collect();
    wanted.push("last".to_owned());
    assert_eq!(lines, wanted, "every line once and in order");
    for (phase, fact) in job.facts(&*platform.broker().await).await {
        assert!(fact.is_some(), "no fact {phase}");
    }
    assert!(job.directory("output_workdir").await.path().join("out.txt").is_file());
}

/// Holds at a point, kills everything there, starts again.
async fn killed_at(point: &str) {
    let mut platform = Platform::with(Options::default().hold_at(point)).await;
    let runs = platform.scratch().join("runs");
    let job = platform.api().script(&agent(&runs, 1), json!({})).await;
    platform.holds().await;
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    ran_once(&platform, &job, &runs).await;
}

#[tokio::test]
async fn killed_while_staged() {
    killed_at("invoke:received").await;
}

#[tokio::test]
async fn killed_after_the_claim() {
    killed_at("invoke:claimed").await;
}

#[tokio::test]
async fn killed_after_the_start() {
    killed_at("invoke:started").await;
}

#[tokio::test]
async fn killed_while_saving() {
    killed_at("invoke:saving").await;
}

#[tokio::test]
async fn killed_after_saving() {
    killed_at("invoke:saved").await;
}

#[tokio::test]
async fn killed_after_publishing() {
    killed_at("invoke:published").await;
}

#[tokio::test]
async fn killed_while_acting() {
    killed_at("act:acting").await;
}

#[tokio::test]
async fn killed_while_resolving() {
    killed_at("resolve:received").await;
}

#[tokio::test]
async fn killed_while_archiving() {
    killed_at("archive:received").await;
}

#[tokio::test]
async fn killed_while_the_agent_runs_and_back_a_minute_later() {
    let mut platform = Platform::start().await;
    let runs = platform.scratch().join("runs");
    let job = platform.api().script(&agent(&runs, 5), json!({})).await;
    let running = || async { runs.is_file().then_some(()) };
    eventually("the agent runs", Duration::from_secs(20), running).await;
    platform.kill().await;
    let killed = Instant::now();
    // The minute is the test: the agent ends meanwhile, with nobody there to be told.
    let minute = || async { (killed.elapsed() > Duration::from_secs(60)).then_some(()) };
    eventually("a minute has passed", Duration::from_secs(70), minute).await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    ran_once(&platform, &job, &runs).await;
}

#[tokio::test]
async fn killed_while_the_agent_runs_and_back_at_once() {
    let mut platform = Platform::start().await;
    let runs = platform.scratch().join("runs");
    let job = platform.api().script(&agent(&runs, 8), json!({})).await;
    let running = || async { runs.is_file().then_some(()) };
    eventually("the agent runs", Duration::from_secs(20), running).await;
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    ran_once(&platform, &job, &runs).await;
}
