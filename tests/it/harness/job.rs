//! One job, from the outside.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use streams::broker::{Broker, Stored};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;
use tempfile::TempDir;
use workers::bundle::{self, Limits, Pick};

use super::processes::answered;
use super::{Api, eventually};

/// A submitted job in the workspace `default`.
#[derive(Clone)]
pub struct Job {
    api: Api,
    pub name: String,
    pub id: JobId,
}

impl Job {
    pub fn new(api: Api, record: &Value) -> Self {
        let word = |key: &str| record[key].as_str().expect("the record says").to_owned();
        Self { api, name: word("name"), id: word("id").parse().expect("a job id") }
    }

    /// The same job at a platform that was started again.
    pub fn at(&self, api: Api) -> Self {
        Self { api, ..self.clone() }
    }

    /// The path of something of it.
    pub fn path(&self, rest: &str) -> String {
        format!("/apis/jobs/v2/workspaces/default/jobs/{}{rest}", self.name)
    }

    pub async fn record(&self) -> Value {
        self.api.get(&self.path("")).await
    }

    pub async fn status(&self) -> String {
        let status = self.api.get(&self.path("/status")).await;
        status["status"].as_str().expect("a status").to_owned()
    }

    pub async fn cancel(&self) -> Value {
        let (status, body) = self.api.ask(Method::POST, &self.path("/cancel"), None).await;
        assert!(status.is_success(), "cancel: {status} {body}");
        body
    }

    /// Waits for a status.
    pub async fn reaches(&self, wanted: &str, within: Duration) {
        let what = format!("job {} is {wanted}", self.name);
        eventually(&what, within, || async { (self.status().await == wanted).then_some(()) }).await;
    }

    /// Waits until it is this far in the chain, or further.
    pub async fn reaches_phase(&self, wanted: Phase, within: Duration) {
        let what = format!("job {} is {wanted}", self.name);
        let there = || async {
            let phase: Phase = serde_json::from_value(self.record().await["phase"].take()).ok()?;
            (phase >= wanted).then_some(())
        };
        eventually(&what, within, there).await;
    }

    /// Waits for the end and returns the record.
    pub async fn ends(&self, within: Duration) -> Value {
        let what = format!("job {} ends", self.name);
        let ended = || async {
            let status = self.status().await;
            matches!(status.as_str(), "completed" | "error" | "cancelled").then_some(())
        };
        eventually(&what, within, ended).await;
        self.record().await
    }

    /// The results' records, by name, sorted.
    pub async fn results(&self) -> Vec<Value> {
        let listed = self.api.get(&self.path("/results")).await;
        let mut results = listed["data"].as_array().expect("a list").clone();
        results.sort_by_key(|result| result["name"].as_str().unwrap_or_default().to_owned());
        results
    }

    pub async fn result_names(&self) -> Vec<String> {
        let name = |result: &Value| result["name"].as_str().expect("a name").to_owned();
        self.results().await.iter().map(name).collect()
    }

    pub async fn result(&self, name: &str) -> Value {
        self.api.get(&self.path(&format!("/results/{name}"))).await
    }

    pub async fn download(&self, result: &str) -> Vec<u8> {
        self.api.bytes(&self.path(&format!("/results/{result}/download"))).await
    }

    /// A JSON result, read.
    pub async fn json(&self, result: &str) -> Value {
        serde_json::from_slice(&self.download(result).await).expect("the result is JSON")
    }

    /// A directory result, unpacked.
    pub async fn directory(&self, result: &str) -> TempDir {
        unpacked(&self.download(result).await)
    }

    /// All log lines, as messages.
    pub async fn log(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.api.get(&self.path(&format!("/logs?limit=1000{cursor}"))).await;
            for line in page["data"].as_array().expect("a list") {
                lines.push(line["message"].as_str().expect("a message").to_owned());
            }
            match page["next_page"].as_str() {
                Some(next) => cursor = format!("&page_cursor={next}"),
                None => return lines,
            }
        }
    }

    /// Its six facts, as they stand in the streams.
    pub async fn facts(&self, broker: &dyn Broker) -> Vec<(Phase, Option<Stored>)> {
        let mut facts = Vec::new();
        for phase in Phase::CHAIN {
            let subject = subject::fact(phase, "default", self.id);
            let fact = answered(|| broker.last(StreamName::of(phase), &subject)).await;
            facts.push((phase, fact));
        }
        facts
    }
}

/// Unpacks a downloaded directory.
fn unpacked(bundle: &[u8]) -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    bundle::unpack(bundle, &Pick::default(), dir.path(), "single", Limits::default())
        .expect("the bundle unpacks");
    dir
}
