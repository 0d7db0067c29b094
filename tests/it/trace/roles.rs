//! Every part sends its spans, at the latest when it ends; a collector that is no use costs nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::collector::Collector;
use super::{LATER, traced};
use crate::harness::{Database, Options, Parts, Platform};

/// So seldom that nothing is sent but at the end.
const NEVER: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "3600000");

/// On two threads, since the end of a platform is waited for on one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_p2_every_part_sends_its_spans_before_it_ends() {
    let collector = Collector::start().await;
    let mut parts = Parts::on(Database::Sqlite).await;
    parts.variable(NEVER.0, NEVER.1);
    parts.variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let (server, worker) = (parts.server(), parts.worker("resolve,stage,invoke,act,archive"));
    let job = server.api().script("echo done", json!({})).await;
    assert_eq!(job.ends(LATER).await["status"], "completed");
    assert_eq!(collector.spans().len(), 0, "nothing is due yet");
    let roles = || -> Vec<_> { collector.spans().into_iter().map(|span| span.role).collect() };
    worker.stop().await;
    assert!(roles().iter().all(|role| role == "worker") && !roles().is_empty(), "{:?}", roles());
    server.stop().await;
    assert!(roles().contains(&"serve".to_owned()), "{:?}", roles());

    let mut options = traced(&collector);
    options.env.push((NEVER.0.to_owned(), NEVER.1.to_owned()));
    let platform = Platform::with(options).await;
    let job = platform.api().script("echo done", json!({})).await;
    assert_eq!(job.ends(LATER).await["status"], "completed");
    drop(platform);
    assert!(roles().contains(&"up".to_owned()), "{:?}", roles());
}

/// One that refuses connections, and one that takes them and never answers.
#[tokio::test]
async fn case_p2_a_collector_that_is_down_or_hangs_blocks_no_job_and_no_end() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let hangs = format!("http://{}", silent.local_addr().expect("an address"));
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let down = format!("http://{}", closed.local_addr().expect("an address"));
    drop(closed);
    for url in [down, hangs] {
        let platform =
            Platform::with(Options::default().set("telemetry.otlp_endpoint", &url)).await;
        for _ in 0..3 {
            let job = platform.api().script("echo done", json!({})).await;
            assert_eq!(job.ends(LATER).await["status"], "completed");
        }
        let log = platform.log();
        let said = log.matches("the collector does not take spans").count();
        assert!(said <= 1, "it is said once:\n{log}");
        let ending = Instant::now();
        drop(platform);
        // What waits for it is bounded; the harness would kill it after half a minute.
        assert!(ending.elapsed() < Duration::from_secs(25), "{:?}", ending.elapsed());
    }
    drop(silent);
}

#[tokio::test]
async fn logs_name_the_trace_and_look_as_they_are_asked_to() {
    let platform = Platform::start().await;
    let job = platform.api().script("echo done", json!({})).await;
    assert_eq!(job.ends(LATER).await["status"], "completed");
    let log = platform.log();
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    let traced: Vec<Value> =
        lines.filter(|it: &Value| it["span"]["trace.id"].is_string()).collect();
    assert!(traced.len() >= 5, "each step says something:\n{log}");
    let trace = job.id.to_string().replace('-', "");
    assert!(traced.iter().all(|line| line["span"]["trace.id"] == *trace), "{log}");

    let mut options = Options::default();
    options.env.push(("ERRAND_LOG_FORMAT".to_owned(), "text".to_owned()));
    let platform = Platform::with(options).await;
    assert!(platform.log().lines().all(|line| !line.starts_with('{')), "{}", platform.log());
}
