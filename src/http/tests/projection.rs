//! How far the records are behind.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::harness::Harness;
use super::{AGENTS, agent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lag_of_the_projection_can_be_asked() {
    let api = Harness::start().await;
    let nothing = json!({"waiting": 0, "oldest_age_seconds": 0.0});
    api.get("/health/projection").await.answers(200, nothing.clone());
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let body = json!({"spec": {"agent": "calc", "input": "x"}});
    api.post(&format!("{AGENTS}/jobs/execute"), body).await.status_is(201);
    let behind = api.get("/health/projection").await.body;
    assert_eq!(behind["waiting"], 1, "{behind}");
    assert!(behind["oldest_age_seconds"].as_f64().is_some_and(|age| age >= 0.0), "{behind}");

    let stop = CancellationToken::new();
    let projector =
        crate::projector::run(Arc::clone(&api.broker), api.records.clone(), stop.clone());
    let projector = tokio::spawn(projector);
    let caught_up = async {
        while api.get("/health/projection").await.body != nothing {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), caught_up).await.expect("it catches up");
    stop.cancel();
    projector.await.expect("it ends by itself");
}
