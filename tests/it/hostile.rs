//! Agents that turn against their own run directory, on a platform that does not keep them out of
//! it. They may harm themselves; the platform goes on, their job ends, and none is run twice for
//! it.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Job, Options, Platform, running_with_argument};

const SOON: Duration = Duration::from_secs(60);

async fn without_sandbox() -> Platform {
    Platform::with(Options::default().set("WORKER__SANDBOX", "none")).await
}

async fn run(platform: &Platform, script: &str) -> Job {
    // The run directory is the one that HOME lies in.
    let script = format!("R=$(dirname $HOME); {script}");
    platform.api().script(&script, json!({"timeout_seconds": 10})).await
}

#[tokio::test]
async fn an_agent_that_removes_its_run_directory_is_not_run_again() {
    let platform = without_sandbox().await;
    let runs = platform.scratch().join("runs");
    let script = format!("echo run >> {}; rm -rf $R; sleep 1", runs.display());
    let record = run(&platform, &script).await.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "worker_lost", "{record}");
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n");
}

#[tokio::test]
async fn an_outcome_that_the_agent_wrote_itself_does_not_count() {
    let platform = without_sandbox().await;
    let script = r#"
        echo '{"version":1,"end":"succeeded","failure":null,"message":"","interrupted":false,
        "started_at":"2026-01-01T00:00:00Z","invoked_at":null,"ended_at":"2026-01-01T00:00:00Z",
        "run_result":null,"error":null,"usage":null,"log_lines":0,"killed":0}' > $R/outcome.json
        sleep 3; exit 7"#;
    let record = run(&platform, script).await.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "agent_failed", "{record}");
}

#[tokio::test]
async fn odd_things_in_the_run_directory_stop_neither_the_job_nor_the_platform() {
    let platform = without_sandbox().await;
    let scripts = [
        "mkfifo $R/outcome.json; sleep 1; echo 41371",
        "rm $R/agent.log; mkfifo $R/agent.log; echo hi; sleep 1",
        "rm $R/agent.log; mkdir $R/agent.log; echo hi",
        "rm $R/started; mkfifo $R/started; sleep 41372",
        "mkfifo $R/stop; sleep 41373",
        "rm $R/launch.json; echo hi",
        "mkdir -p $R/outcome.json/x; echo hi",
        "rm -rf $R/base; echo hi",
    ];
    for script in scripts {
        let job = run(&platform, script).await;
        let record = job.ends(SOON).await;
        println!("{script}: {} {}", record["status"], record["error_details"]);
    }
    for argument in ["41372", "41373"] {
        assert_eq!(running_with_argument(argument), [0_u32; 0]);
    }
    let after = platform.api().script("echo fine", json!({})).await;
    assert_eq!(after.ends(SOON).await["status"], "completed");
}
