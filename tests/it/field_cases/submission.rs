//! FC-O: one submission, one job, also over a restart; and a queue that has no room for more.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Options, Platform, eventually, script_agent};

const SOON: Duration = Duration::from_secs(60);

async fn keyed(platform: &Platform, key: &str, input: &str) -> (StatusCode, Value) {
    let base = platform.run["http"].as_str().expect("run.json says");
    let url = format!("{base}/apis/agents/v2/workspaces/default/jobs/execute");
    let body = json!({"spec": {"agent": script_agent(), "input": input}});
    let request = reqwest::Client::new().post(url).header("idempotency-key", key).json(&body);
    let answer = request.send().await.expect("the platform answers");
    (answer.status(), answer.json().await.expect("JSON"))
}

#[tokio::test]
async fn case_o1_a_key_is_known_after_a_restart_and_runs_nothing_again() {
    let mut platform =
        Platform::with(Options::default().set("retention.finished_seconds", 0)).await;
    let (status, first) = keyed(&platform, "nightly", "one").await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let job = crate::harness::Job::new(platform.api(), &first);
    job.ends(SOON).await;
    // Also when the job's messages are gone, with all that the queue knew of it.
    let broker = platform.broker().await;
    let gone = || async { job.facts(&*broker).await.iter().all(|it| it.1.is_none()).then_some(()) };
    eventually("the job's facts have left the streams", SOON, gone).await;
    drop(broker);

    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let (status, again) = keyed(&platform, "nightly", "one").await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &first["id"]), "{again}");
    let job = job.at(platform.api());
    assert_eq!(again["status"], job.status().await, "it is as it ended");
    let facts = job.facts(&*platform.broker().await).await;
    assert!(facts.iter().all(|(_, fact)| fact.is_none()), "nothing is published again");
    let (status, refused) = keyed(&platform, "nightly", "two").await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
}
