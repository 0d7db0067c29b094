//! Fairness: workspaces in turn, limits that hold, and a queue that can be looked at.

mod limits;
mod turns;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Api, eventually};

/// How long a job may take on a machine that runs other tests beside.
const LATER: Duration = Duration::from_secs(120);

/// Submissions that are under way at once.
const WIDTH: usize = 16;

/// A workspace of a platform.
struct Workspace {
    api: Api,
    name: &'static str,
}

impl Workspace {
    async fn new(api: Api, name: &'static str) -> Self {
        let body = json!({"name": name});
        let (status, body) =
            api.ask(Method::POST, "/apis/entities/v2/workspaces", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        Self { api, name }
    }

    fn jobs(&self) -> String {
        format!("/apis/jobs/v2/workspaces/{}/jobs", self.name)
    }

    /// Submits a job of an agent that is this command; its name.
    async fn submit(&self, agent: &str, command: &[&str]) -> String {
        let path = format!("/apis/agents/v2/workspaces/{}/jobs/execute", self.name);
        let settings = json!({"command": command, "allow_empty": true});
        let config = json!({
            "config_format": "nemo-agents-spec-v1",
            "name": agent,
            "default_harness": "script",
            "harnesses": {"script": {"kind": "script", "settings": settings}},
        });
        let agent = json!({"config_format": "nemo-agents-spec-v1", "config": config});
        let spec = json!({"spec": {"agent": agent, "input": ""}});
        let (status, body) = self.api.ask(Method::POST, &path, Some(spec)).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["name"].as_str().expect("a name").to_owned()
    }

    /// Submits jobs of so many agents in turn.
    async fn submit_many(&self, jobs: usize, agents: usize, command: &[&str]) -> Vec<String> {
        let submitted = stream::iter(0..jobs)
            .map(|n| async move { self.submit(&format!("agent-{}", n % agents), command).await });
        submitted.buffer_unordered(WIDTH).collect().await
    }

    async fn record(&self, job: &str) -> Value {
        self.api.get(&format!("{}/{job}", self.jobs())).await
    }

    /// Jobs in a status.
    async fn count(&self, status: &str) -> u64 {
        let filter = format!("filter[status]={status}");
        let listed = self.api.get(&format!("{}?page_size=1&{filter}", self.jobs())).await;
        listed["pagination"]["total_results"].as_u64().expect("a number")
    }

    /// Those whose agent has run, of the first thousand.
    async fn begun(&self) -> Vec<Value> {
        let listed = self.api.get(&format!("{}?page_size=1000&sort=created_at", self.jobs())).await;
        let begun = |job: &&Value| job["attempts"][0]["started_at"].is_string();
        listed["data"].as_array().expect("a list").iter().filter(begun).cloned().collect()
    }

    /// Waits until a job is in a status.
    async fn reaches(&self, job: &str, status: &str) -> Value {
        let there = || async {
            let record = self.record(job).await;
            (record["status"] == status).then_some(record)
        };
        eventually(&format!("{job} is {status}"), LATER, there).await
    }

    /// Waits until the chain of a job is so far.
    async fn is_at(&self, job: &str, phase: &str) {
        let there = || async { (self.record(job).await["phase"] == phase).then_some(()) };
        eventually(&format!("{job} is {phase}"), LATER, there).await;
    }
}

/// When an attempt of a job's was started.
fn started_at(record: &Value) -> Timestamp {
    let at = record["attempts"][0]["started_at"].as_str();
    at.expect("it ran").parse().expect("a time")
}

/// When a job reached a phase.
fn phase_at(record: &Value, phase: &str) -> Timestamp {
    record["phase_times"][phase].as_str().expect("it was there").parse().expect("a time")
}
