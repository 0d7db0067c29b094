//! The parts apart: an API server and a worker as processes of their own, on a queue, an object
//! store and a PostgreSQL that belong to neither.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Database, Parts};

#[tokio::test]
async fn a_server_and_a_worker_share_external_parts_on_postgresql() {
    let parts = Parts::on(Database::Postgres).await;
    let server = parts.server();
    let steps = "resolve,stage,invoke,act,archive";
    let first = parts.worker(steps);

    let api = server.api();
    let job = api.script("echo apart; echo kept > file", json!({"context": {"a": "ü"}})).await;
    assert_eq!(job.ends(Duration::from_secs(60)).await["status"], "completed");
    assert_eq!(job.json("fabric_run_result").await["response"], "apart");

    // A worker that is told to stop leaves its agent to the next one at this place.
    let runs = parts.lender.scratch().join("runs");
    let script = format!("echo run >> {}; sleep 5; echo done", runs.display());
    let long = api.script(&script, json!({})).await;
    long.reaches("active", Duration::from_secs(60)).await;
    first.stop().await;
    let second = parts.worker(steps);
    assert_eq!(long.ends(Duration::from_secs(60)).await["status"], "completed");
    assert_eq!(std::fs::read_to_string(runs).expect("it ran"), "run\n");
    second.stop().await;
    server.stop().await;
}
