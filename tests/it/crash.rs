//! The crash table of ARCHITECTURE.md: every process of the platform is killed at a named point, and the job still
//! ends truthfully, its agent having run once.

mod table;

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
async fn kill_at(point: &str) {
    let mut platform = Platform::with(Options::default().hold_at(point)).await;
    let runs = platform.scratch().join("runs");
    let job = platform.api().script(&agent(&runs, 1), json!({})).await;
    platform.holds().await;
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    ran_once(&platform, &job, &runs).await;
}

/// A row of the crash table each: a test of this name, which kills at this point.
macro_rules! killed_at {
    ($($name:ident $point:literal)*) => {$(
        #[tokio::test]
        async fn $name() {
            kill_at($point).await;
        }
    )*};
}

killed_at! {
    killed_while_resolving "resolve:received"
    killed_after_resolved_is_published "resolve:published"
    killed_after_submitted_is_acknowledged "resolve:acknowledged"
    killed_while_staging "stage:received"
    killed_after_staged_is_published "stage:published"
    killed_after_resolved_is_acknowledged "stage:acknowledged"
    killed_while_staged "invoke:received"
    killed_after_the_claim "invoke:claimed"
    killed_after_the_start "invoke:started"
    killed_while_saving "invoke:saving"
    killed_after_saving "invoke:saved"
    killed_after_publishing "invoke:published"
    killed_after_staged_is_acknowledged "invoke:acknowledged"
    killed_while_invoked "act:received"
    killed_while_acting "act:acting"
    killed_after_acted_is_published "act:published"
    killed_after_invoked_is_acknowledged "act:acknowledged"
    killed_while_archiving "archive:received"
    killed_after_archived_is_published "archive:published"
    killed_after_acted_is_acknowledged "archive:acknowledged"
}

#[tokio::test]
async fn killed_while_the_agent_runs_and_back_a_minute_later() {
    let mut platform = Platform::start().await;
    let runs = platform.scratch().join("runs");
    let job = platform.api().script(&agent(&runs, 5), json!({})).await;
    let running = || async { runs.is_file().then_some(()) };
    eventually("the agent runs", Duration::from_secs(60), running).await;
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
    eventually("the agent runs", Duration::from_secs(60), running).await;
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    ran_once(&platform, &job, &runs).await;
}
