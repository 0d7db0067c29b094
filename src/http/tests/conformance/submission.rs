//! The reference's own tests, restated: one of ours for each of theirs, under its name (A), or
//! grouped as the list of cases groups them (D, E, H).
//!
//! Not here, for want of the thing itself: what speaks of the inference gateway (`base_url` of
//! models, in `to_spec_resolves_bare_agent…`, `to_spec_snapshots_the_inline_config…` and
//! `execute_job_create_route_stores…`, of which the rest is here), of deployments
//! (`deployments_default_image_untouched_by_jobs_default`, active and terminal deployments of E)
//! and of Python (`agent_inline_matches_the_agent_entity_shape`; of D, that merging leaves its
//! argument alone). Of D neither that an environment lies beside a NAT configuration as it is: no
//! job runs one. In `tests/it/conformance`, because it happens when a job runs: `materialize_…`
//! and what an agent receives as its context. Reading agent.yaml from a file is the command
//! line's.

mod agents_api;
mod compile;
mod context;
mod create;
mod environment_api;
mod environments;
mod inline;
mod request;
mod seed;

use serde_json::{Value, json};
use streams::id::JobId;
use streams::snapshot::Snapshot;

use super::super::harness::{Answer, Harness};
use super::super::{AGENTS, FILESETS, SECRETS, agent};

/// An API with the agent `calc`.
async fn furnished() -> Harness {
    let api = Harness::start().await;
    register(&api, "default", agent("calc")).await;
    api
}

async fn register(api: &Harness, workspace: &str, agent: Value) {
    let path = format!("/apis/agents/v2/workspaces/{workspace}/agents");
    api.post(&path, agent).await.status_is(201);
}

async fn workspace(api: &Harness, name: &str) {
    api.post("/apis/entities/v2/workspaces", json!({"name": name})).await.status_is(201);
}

async fn fileset(api: &Harness, name: &str, paths: &[&str]) {
    api.post(FILESETS, json!({"name": name})).await.status_is(200);
    for path in paths {
        api.put(&format!("{FILESETS}/{name}/-/{path}"), "644", b"x".to_vec()).await.status_is(200);
    }
}

async fn secret(api: &Harness, name: &str) {
    api.post(SECRETS, json!({"name": name, "value": "a secret value"})).await.status_is(201);
}

/// Keeps an environment, a spec or a compute spec.
async fn keep(api: &Harness, collection: &str, body: Value) {
    api.post(&format!("{AGENTS}/{collection}"), body).await.status_is(201);
}

/// Submits a job of `calc` with the input `x`, and with what is given.
async fn submit(api: &Harness, given: Value) -> Answer {
    let mut spec = json!({"agent": "calc", "input": "x"});
    for (key, value) in given.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    api.post(&format!("{AGENTS}/jobs/execute"), json!({"spec": spec})).await
}

/// The spec that is answered for it.
async fn accepted(api: &Harness, given: Value) -> Value {
    let mut made = submit(api, given).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body["spec"].take()
}

/// Checks that it is refused, in words that contain these.
async fn refused(api: &Harness, given: Value, text: &str) {
    let answer = submit(api, given.clone()).await;
    assert_eq!(answer.status, 422, "{given}: {}", answer.body);
    let detail = match &answer.body["detail"] {
        Value::String(detail) => detail.clone(),
        list => list.to_string(),
    };
    assert!(detail.contains(text), "{given}: {detail}\nlacks\n{text}");
}

/// The snapshot that is stored for it.
async fn snapshot(api: &Harness, given: Value) -> Snapshot {
    let made = submit(api, given).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id: JobId = made.body["id"].as_str().expect("text").parse().expect("an id");
    let job = api.records.jobs().by_id(id).await.expect("records answer").expect("it is there");
    job.snapshot.expect("it has a snapshot")
}
