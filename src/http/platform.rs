//! What the platform says about itself: health, status, version, discovery.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use streams::broker::Lag;
use streams::topology::{StreamName, projector_consumers};

use super::Api;
use super::error::Answer;
use super::metrics::since;

/// The process answers.
pub(super) async fn live() -> Json<Value> {
    Json(json!({"status": "live"}))
}

/// A job would be accepted.
pub(super) async fn ready(State(api): State<Api>) -> (StatusCode, Json<Value>) {
    if troubles(&api).await.is_empty() {
        return (StatusCode::OK, Json(json!({"status": "ready"})));
    }
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"detail": {"status": "not_ready"}})))
}

/// Which parts answer.
pub(super) async fn status(State(api): State<Api>) -> Json<Value> {
    let troubles = troubles(&api).await;
    let status = if troubles.is_empty() { "healthy" } else { "unhealthy" };
    let ready = ["agents", "auth", "entities", "files", "jobs", "secrets"];
    let ready: &[&str] = if troubles.is_empty() { &ready } else { &[] };
    let not_ready: Vec<_> = troubles
        .into_iter()
        .map(|name| json!({"name": name, "message": format!("{name} do not answer")}))
        .collect();
    Json(json!({
        "status": status,
        "services": {"ready": ready, "not_ready": not_ready},
        "controllers": {"healthy": status == "healthy", "status": {}},
    }))
}

/// How far the records are behind the queue: messages that were not taken in yet, and how long
/// the oldest of them has waited.
pub(super) async fn projection(State(api): State<Api>) -> Answer<Json<Value>> {
    let (waiting, age) = behind(&api).await?;
    Ok(Json(json!({"waiting": waiting, "oldest_age_seconds": age.as_secs_f64()})))
}

/// The same as figures.
pub(super) async fn behind(api: &Api) -> Answer<(u64, Duration)> {
    let (mut waiting, mut oldest) = (0, None);
    for consumer in projector_consumers() {
        let Lag { messages, oldest: since } = api.broker.lag(&consumer).await?;
        waiting += messages;
        oldest = [oldest, since].into_iter().flatten().min();
    }
    Ok((waiting, oldest.map_or(Duration::ZERO, since)))
}

/// Names the parts that do not answer.
async fn troubles(api: &Api) -> Vec<&'static str> {
    let (records, queue) =
        tokio::join!(api.records.ping(), api.broker.consumers(StreamName::Intake));
    let mut troubles = Vec::new();
    if let Err(error) = records {
        tracing::warn!(%error, "records are not ready");
        troubles.push("records");
    }
    if let Err(error) = queue {
        tracing::warn!(%error, "the queue is not ready");
        troubles.push("queues");
    }
    troubles
}

/// The version, and the revision that whoever built it named in `ERRAND_REVISION`.
pub(super) async fn cluster_info() -> Json<Value> {
    let revision = option_env!("ERRAND_REVISION").unwrap_or("dev");
    Json(json!({"platform_version": env!("CARGO_PKG_VERSION"), "revision": revision}))
}

/// How to authenticate: with a token that was made here, or not at all.
pub(super) async fn discovery(State(api): State<Api>) -> Json<Value> {
    Json(json!({"auth_enabled": api.gate.is_shut(), "oidc": null}))
}

/// Somebody is at home.
pub(super) async fn home() -> &'static str {
    "OK"
}
