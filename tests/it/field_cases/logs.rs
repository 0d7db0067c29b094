//! FC-E: logs that are lost, late or too large for the queue.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::json;
use streams::broker::Broker;
use streams::envelope::MAX_PAYLOAD_BYTES;
use streams::topology::StreamName;

use crate::harness::{Job, Options, Platform, script_agent};

const LATER: Duration = Duration::from_secs(120);

/// Jobs that are watched at once.
const AT_ONCE: usize = 8;

#[tokio::test]
async fn case_e2_no_line_of_many_jobs_at_once_is_lost() {
    let platform = Platform::with(Options { slots: 8, ..Options::default() }).await;
    let api = platform.api();
    let script = "for i in $(seq 1 10); do echo line $i; done";
    let mut jobs = Vec::new();
    for _ in 0..100 {
        jobs.push(api.script(script, json!({})).await);
    }
    let wanted: Vec<_> = (1..=10).map(|n| format!("line {n}")).collect();
    for job in &jobs {
        assert_eq!(job.ends(LATER).await["status"], "completed");
        assert_eq!(said(job).await, wanted);
    }
}

/// What the agent wrote, without the platform's own lines.
async fn said(job: &Job) -> Vec<String> {
    let mut lines = job.log().await;
    lines.retain(|line| line.contains("line") && !line.contains("gent"));
    lines
}

#[tokio::test]
async fn case_e5_the_last_line_is_there_when_the_end_is_seen() {
    let platform = Platform::with(Options { slots: 8, ..Options::default() }).await;
    let api = platform.api();
    let jobs = stream::iter(0..200).map(|_| async {
        let job = api.script("echo only-line", json!({})).await;
        let ended = job.ends(LATER).await;
        // Asked for once, and at once.
        (ended["status"] == "completed").then_some(said(&job).await)
    });
    let mut jobs = jobs.buffer_unordered(AT_ONCE);
    let mut seen = 0;
    while let Some(log) = jobs.next().await {
        assert_eq!(log.expect("it completed"), ["only-line"]);
        seen += 1;
    }
    assert_eq!(seen, 200);
}

#[tokio::test]
async fn case_e6_nothing_large_rides_on_the_queue() {
    let platform = Platform::start().await;
    let api = platform.api();
    let large = "x".repeat(3 << 20);
    // Of longer lines than the case has: two and a half million would test patience.
    let yes = "yes 'a line of some length, as people and programs write them' | head -c 5000000";
    let lines = api.script(yes, json!({})).await;
    let prompt = api.script("wc -c", json!({"input": large})).await;
    let context = json!({"context": {"large": large}});
    let context = api.script("wc -c < $ERRAND_CONTEXT", context).await;
    let response = api.script("head -c 3145728 /dev/zero | tr '\\0' y", json!({})).await;
    for job in [&lines, &prompt, &context, &response] {
        let record = job.ends(LATER).await;
        assert_eq!(record["status"], "completed", "{record}");
    }
    assert_eq!(prompt.json("fabric_run_result").await["response"], "3145728");
    let over = json!({"spec": {"agent": script_agent(), "input": "x".repeat(9 << 20)}});
    let path = "/apis/agents/v2/workspaces/default/jobs/execute";
    let (status, refused) = api.ask(reqwest::Method::POST, path, Some(over)).await;
    assert_eq!(status, 413, "{refused}");
    assert!(refused.to_string().contains("at most 8388608"), "it names the limit: {refused}");

    let broker = platform.broker().await;
    let mut messages = 0;
    for (stream, filter) in [
        (StreamName::Intake, "jobs.submitted.>"),
        (StreamName::Jobs, "jobs.*.>"),
        (StreamName::Status, "status.>"),
        (StreamName::Logs, "logs.>"),
        (StreamName::Refused, "jobs.refused"),
    ] {
        let mut from = 0;
        while let Some(stored) = broker.next(stream, filter, from).await.expect("nats answers") {
            let size = stored.payload.len();
            assert!(size <= MAX_PAYLOAD_BYTES, "{} has {size} bytes", stored.subject);
            (from, messages) = (stored.sequence + 1, messages + 1);
        }
    }
    assert!(messages > 4 * 6, "only {messages} messages were looked at");
}
