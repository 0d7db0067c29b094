//! The HTTP client of the command line: the server's routes, its errors, nothing printed.

pub mod context;
pub mod reference;
mod transfer;

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

pub use context::Context;
pub use transfer::{Download, Downloaded};

use crate::exit::Exit;

/// What may stand in a path segment as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A file's mode rides along in octal.
pub const MODE_HEADER: &str = "x-errand-mode";

/// Time until a connection stands. There is none for the answer: downloads take what they take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused it.
    #[error("{detail} ({status}, {request})")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What the server says.
        detail: String,
        /// Method and path.
        request: String,
    },
    /// The server failed.
    #[error("server error: {detail} ({status}, {request})")]
    Server {
        /// The status.
        status: StatusCode,
        /// What the server says.
        detail: String,
        /// Method and path.
        request: String,
    },
    /// The server cannot be reached, or broke off.
    #[error("cannot reach {base}: {reason}; is the platform up? (errand up, or --base-url)")]
    Unreachable {
        /// The server.
        base: String,
        /// The chain of causes.
        reason: String,
    },
    /// The answer is not what it should be.
    #[error("unexpected answer: {reason} ({request})")]
    Answer {
        /// What is wrong with it.
        reason: String,
        /// Method and path.
        request: String,
    },
    /// A local file.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
}

impl Error {
    /// How the program ends because of it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused { status, .. } if *status == StatusCode::NOT_FOUND => Exit::NotFound,
            Self::Refused { .. } => Exit::Refused,
            Self::Server { .. } | Self::Unreachable { .. } | Self::Answer { .. } => {
                Exit::Unreachable
            }
            Self::File { .. } => Exit::Failed,
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Server { .. } => true,
            Self::Refused { status, .. } => *status == StatusCode::TOO_MANY_REQUESTS,
            Self::Answer { .. } | Self::File { .. } => false,
        }
    }

    /// Whether the server says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.exit() == Exit::NotFound
    }
}

/// A client of one server, working in one workspace.
#[derive(Clone, Debug)]
pub struct Client {
    context: Context,
    http: reqwest::Client,
}

impl Client {
    /// Talks to nobody yet.
    pub fn new(context: Context) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .user_agent(concat!("errand/", env!("CARGO_PKG_VERSION")))
            .build();
        match http {
            Ok(http) => Ok(Self { context, http }),
            Err(error) => Err(Error::Unreachable { base: context.base_url, reason: chain(&error) }),
        }
    }

    /// The workspace of names that say none.
    pub fn workspace(&self) -> &str {
        &self.context.workspace
    }

    /// Sends a request without a body.
    pub async fn call(&self, method: Method, path: &str) -> Result<Value, Error> {
        self.json(self.request(method, path), path).await
    }

    /// Gets a JSON document.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.call(Method::GET, path).await
    }

    /// Gets a JSON document with query parameters.
    pub async fn query(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Error> {
        let query: Vec<_> = query
            .iter()
            .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, SEGMENT)))
            .collect();
        let path =
            if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
        self.get(&path).await
    }

    /// Posts a JSON document.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.json(self.request(Method::POST, path).json(body), path).await
    }

    /// Removes something.
    pub async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.call(Method::DELETE, path).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.context.base_url));
        match &self.context.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder, path: &str) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let request = format!("{}{path}", self.context.base_url);
        let detail = detail(&response.text().await.unwrap_or_default(), status);
        if status.is_server_error() {
            return Err(Error::Server { status, detail, request });
        }
        Err(Error::Refused { status, detail, request })
    }

    async fn json(&self, request: RequestBuilder, path: &str) -> Result<Value, Error> {
        let response = self.send(request, path).await?;
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body)
            .map_err(|error| Error::Answer { reason: error.to_string(), request: path.to_owned() })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        Error::Unreachable { base: self.context.base_url.clone(), reason: chain(error) }
    }
}

/// One path segment, escaped.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// A relative path, each segment escaped.
pub fn segments(path: &str) -> String {
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// An error with all that caused it; the outermost alone often says nothing.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    text
}

/// What the server says: the text of `detail`, or the messages of its validation list.
fn detail(body: &str, status: StatusCode) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    match &parsed["detail"] {
        Value::String(text) => text.clone(),
        Value::Array(entries) => {
            let lines: Vec<_> = entries.iter().map(validation_line).collect();
            lines.join("; ")
        }
        Value::Null if body.trim().is_empty() => {
            status.canonical_reason().unwrap_or("no reason given").to_owned()
        }
        Value::Null => body.trim().chars().take(2000).collect(),
        other => other.to_string(),
    }
}

/// `spec.timeout_seconds: Input should be greater than 0`.
fn validation_line(entry: &Value) -> String {
    let place: Vec<_> = entry["loc"]
        .as_array()
        .into_iter()
        .flatten()
        .skip(1)
        .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
        .collect();
    let message = entry["msg"].as_str().unwrap_or("invalid");
    let message = message.strip_prefix("Value error, ").unwrap_or(message);
    if place.is_empty() { message.to_owned() } else { format!("{}: {message}", place.join(".")) }
}

#[cfg(test)]
mod tests;
