//! When an agent said something last, as its job's status tells it.

use jiff::Timestamp;
use serde_json::{Value, json};
use streams::id::{Attempt, JobId};
use streams::log::{Lines, LogBatch, LogLine, LogStream};
use streams::outcome::Outcome;
use streams::phase::Phase;

use super::JOBS;
use super::harness::Harness;
use crate::records::tests::job::{admit, fact, running, second};

/// A batch with a line each second, from these streams.
fn batch(job: JobId, attempt: u32, first: u64, streams: &[LogStream]) -> LogBatch {
    let line = |(n, stream): (u64, &LogStream)| {
        let at = second(i64::try_from(n).expect("a small number"));
        LogLine { n, at, stream: *stream, text: "x".to_owned() }
    };
    LogBatch {
        v: 1,
        job,
        workspace: "default".to_owned(),
        attempt: Attempt(attempt),
        first,
        count: streams.len() as u64,
        blank: Some(0),
        prev: 0,
        offset: first,
        total_bytes: first,
        lines: Lines::Inline((first..).zip(streams).map(line).collect()),
    }
}

async fn told(api: &Harness) -> Value {
    api.get(&format!("{JOBS}/speaker/status")).await.body["status_details"]["last_output_at"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_of_an_agent_that_runs_is_told_and_no_other() {
    use LogStream::{Platform, Stderr, Stdout};
    for api in Harness::start_both().await {
        let job = admit(&api.records, "speaker").await.id;
        assert_eq!(told(&api).await, Value::Null, "it does not run");
        let staged = fact(job, Phase::Staged, &Outcome::Succeeded);
        api.records.project(&[staged, running(job, 1, 1, 0)]).await.expect("it is taken in");
        assert_eq!(told(&api).await, Value::Null, "it has no log");
        api.publish(&batch(job, 1, 1, &[Platform, Platform])).await;
        assert_eq!(told(&api).await, Value::Null, "the platform has spoken");
        api.publish(&batch(job, 1, 3, &[Stdout, Stderr, Platform])).await;
        let at: Timestamp = told(&api).await.as_str().expect("a time").parse().expect("RFC 3339");
        assert_eq!(at, second(4));

        api.records.project(&[running(job, 2, 5, 0)]).await.expect("it is taken in");
        assert_eq!(told(&api).await, Value::Null, "another attempt has said nothing yet");
        api.publish(&batch(job, 2, 6, &[Stdout])).await;
        assert_ne!(told(&api).await, json!(null));
        let ended = fact(job, Phase::Invoked, &Outcome::Succeeded);
        api.records.project(&[ended]).await.expect("it is taken in");
        assert_eq!(told(&api).await, Value::Null, "it has ended");
        api.records.close().await;
    }
}
