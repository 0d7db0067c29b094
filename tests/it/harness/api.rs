//! The HTTP API as tests use it.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use super::{Job, script_agent};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of one platform, in the workspace `default`.
#[derive(Clone)]
pub struct Api {
    http: Client,
    base: String,
}

impl Api {
    pub fn new(base: &str) -> Self {
        let http = Client::builder().timeout(PATIENCE).build().expect("a client");
        Self { http, base: base.to_owned() }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The same as whoever has a token.
    pub fn with_token(&self, token: &str) -> Self {
        let value = format!("Bearer {token}").parse().expect("a token is a header's value");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        let http = Client::builder().timeout(PATIENCE).default_headers(headers).build();
        Self { http: http.expect("a client"), base: self.base.clone() }
    }

    /// Any request; the answer's status and JSON (null when it is none).
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        self.try_ask(method, path, body).await.expect("the platform answers")
    }

    /// The same of a platform that may be away; none when there was no whole answer.
    pub async fn try_ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Option<(StatusCode, Value)> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status();
        let bytes = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    /// A GET that must succeed.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, None).await;
        assert!(status.is_success(), "GET {path}: {status} {body}");
        body
    }

    /// Bytes that must be there.
    pub async fn bytes(&self, path: &str) -> Vec<u8> {
        let answer = self.http.get(format!("{}{path}", self.base)).send().await.expect("answers");
        assert!(answer.status().is_success(), "GET {path}: {}", answer.status());
        answer.bytes().await.expect("the download is whole").to_vec()
    }

    /// Bytes, if they come whole.
    pub async fn try_bytes(&self, path: &str) -> Option<Vec<u8>> {
        let answer = self.http.get(format!("{}{path}", self.base)).send().await.ok()?;
        let answer = answer.error_for_status().ok()?;
        Some(answer.bytes().await.ok()?.to_vec())
    }

    /// Writes a file; the answer's status.
    pub async fn put(&self, path: &str, contents: &str) -> StatusCode {
        let put = self.http.put(format!("{}{path}", self.base)).body(contents.to_owned());
        put.send().await.expect("the platform answers").status()
    }

    /// Makes a fileset of files with their contents.
    pub async fn fileset(&self, name: &str, files: &[(&str, &str)]) {
        let filesets = "/apis/files/v2/workspaces/default/filesets";
        let (status, body) = self.ask(Method::POST, filesets, Some(json!({"name": name}))).await;
        assert!(status.is_success(), "fileset {name}: {status} {body}");
        for (path, contents) in files {
            self.upload(name, path, contents.as_bytes().to_vec()).await;
        }
    }

    /// Keeps a secret of this name.
    pub async fn secret(&self, name: &str, value: &str) {
        let body = json!({"name": name, "value": value});
        let path = "/apis/secrets/v2/workspaces/default/secrets";
        let (status, body) = self.ask(Method::POST, path, Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "secret {name}: {body}");
    }

    /// Writes a file of a fileset.
    pub async fn upload(&self, fileset: &str, path: &str, contents: impl Into<reqwest::Body>) {
        let filesets = "/apis/files/v2/workspaces/default/filesets";
        let url = format!("{}{filesets}/{fileset}/-/{path}", self.base);
        let answer = self.http.put(url).body(contents).send().await;
        let status = answer.expect("the platform answers").status();
        assert!(status.is_success(), "file {path}: {status}");
    }

    /// Registers an agent.
    pub async fn agent(&self, name: &str, config: Value) {
        let path = "/apis/agents/v2/workspaces/default/agents";
        let format = config["config_format"].clone();
        let body = json!({"name": name, "config": config, "config_format": format});
        let (status, body) = self.ask(Method::POST, path, Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "agent {name}: {body}");
    }

    /// Submits a spec that must be accepted.
    pub async fn submit(&self, spec: Value) -> Job {
        let path = "/apis/agents/v2/workspaces/default/jobs/execute";
        let (status, body) = self.ask(Method::POST, path, Some(json!({"spec": spec}))).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        Job::new(self.clone(), &body)
    }

    /// The same with a header.
    pub async fn submit_with(&self, (name, value): (&str, &str), spec: Value) -> Job {
        let url = format!("{}/apis/agents/v2/workspaces/default/jobs/execute", self.base);
        let request = self.http.post(url).header(name, value).json(&json!({"spec": spec}));
        let answer = request.send().await.expect("the platform answers");
        assert_eq!(answer.status(), StatusCode::CREATED);
        Job::new(self.clone(), &answer.json().await.expect("it is JSON"))
    }

    /// Submits a job whose agent is this script, in a working directory of its own. `more` is
    /// merged into the spec.
    pub async fn script(&self, script: &str, more: Value) -> Job {
        let fileset = format!("fs-{}", uuid::Uuid::now_v7().simple());
        self.fileset(&fileset, &[("agent.sh", script)]).await;
        let mut spec = json!({
            "agent": script_agent(),
            "input": "",
            "workdir": {"base_workdir": fileset},
        });
        for (key, value) in more.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        self.submit(spec).await
    }
}
