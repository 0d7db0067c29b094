//! The HTTP client of the command line: the server's routes, its errors, nothing printed.

pub mod context;
mod error;
pub mod reference;
mod submission;
mod transfer;

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

pub use context::Context;
pub use error::Error;
pub use transfer::{Download, Downloaded};

/// What may stand in a path segment as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A file's mode rides along in octal.
pub const MODE_HEADER: &str = "x-errand-mode";

/// Time until a connection stands.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long a server may say nothing before it is given up. A connection that has died in silence
/// is found out by it.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// A client of one server, working in one workspace.
#[derive(Clone, Debug)]
pub struct Client {
    context: Context,
    http: reqwest::Client,
    /// For uploads, during which the server says nothing and may.
    patient: reqwest::Client,
}

impl Client {
    /// Talks to nobody yet.
    pub fn new(context: Context) -> Result<Self, Error> {
        Self::with_silence(context, SILENCE_LIMIT)
    }

    /// The same, which gives up a silent server after another time.
    pub fn hasty(&self, limit: Duration) -> Result<Self, Error> {
        Self::with_silence(self.context.clone(), limit)
    }

    fn with_silence(context: Context, limit: Duration) -> Result<Self, Error> {
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT_LIMIT)
                .user_agent(concat!("errand/", env!("CARGO_PKG_VERSION")))
        };
        let failed = |error| Error::unreachable(&context.base_url, "", &error);
        let http = builder().read_timeout(limit).build().map_err(failed)?;
        let patient = builder().build().map_err(failed)?;
        Ok(Self { context, http, patient })
    }

    /// The workspace of names that say none.
    pub fn workspace(&self) -> &str {
        &self.context.workspace
    }

    /// Sends a request without a body.
    pub async fn call(&self, method: Method, path: &str) -> Result<Value, Error> {
        self.json(self.request(&self.http, method, path)).await
    }

    /// Sends a JSON document.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Error> {
        self.json(self.request(&self.http, method, path).json(body)).await
    }

    /// Gets a JSON document.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.call(Method::GET, path).await
    }

    /// Gets a JSON document with query parameters.
    pub async fn query(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Error> {
        let query: Vec<_> =
            query.iter().map(|(key, value)| format!("{key}={}", segment(value))).collect();
        let path =
            if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
        self.get(&path).await
    }

    /// Makes something of a JSON document.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.send(Method::POST, path, body).await
    }

    /// Removes something.
    pub async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.call(Method::DELETE, path).await
    }

    fn request(&self, http: &reqwest::Client, method: Method, path: &str) -> RequestBuilder {
        let request = http.request(method, format!("{}{path}", self.context.base_url));
        match &self.context.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request; an answer that is no success is an error.
    async fn answer(&self, request: RequestBuilder) -> Result<(Response, String), Error> {
        let (http, request) = request.build_split();
        let request = request.map_err(|error| self.unreachable("", &error))?;
        let shown = format!("{} {}", request.method(), request.url());
        let answer = http.execute(request).await;
        let response = answer.map_err(|error| self.unreachable(&shown, &error))?;
        let status = response.status();
        if status.is_success() {
            return Ok((response, shown));
        }
        let body = response.text().await.unwrap_or_default();
        Err(Error::answered(status, &body, shown))
    }

    async fn json(&self, request: RequestBuilder) -> Result<Value, Error> {
        let (response, request) = self.answer(request).await?;
        let body = response.bytes().await.map_err(|error| self.unreachable(&request, &error))?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body)
            .map_err(|error| Error::Answer { reason: error.to_string(), request })
    }

    fn unreachable(&self, request: &str, error: &reqwest::Error) -> Error {
        Error::unreachable(&self.context.base_url, request, error)
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

#[cfg(test)]
mod tests;
