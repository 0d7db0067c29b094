//! `agents.webhook`: tells an HTTP receiver of the user's that the job succeeded.
//!
//! Requests are signed and named as the Standard Webhooks specification has it
//! (<https://www.standardwebhooks.com>, version 1.0.0). They go to public addresses only, unless
//! the installation allows others, and follow no redirect: the platform stands where its users
//! do not, and must not reach for them into a network that they cannot see.

mod address;
mod signature;

use std::collections::BTreeMap;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Definition, Way};
use address::{Guard, Private};

/// Tries in all, and the wait before the second, which trebles: 0.25 s, 0.75 s, 2.25 s, 6.75 s.
const TRIES: usize = 5;
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// How long a receiver may take to answer, unless the configuration says.
const TIMEOUT_SECONDS: f64 = 10.0;

/// Bytes of a refusal that are read and quoted.
const QUOTED_BYTES: usize = 300;

/// Headers of the user's at most. A map of tens of thousands panics.
const MAX_HEADERS: usize = 100;

/// Headers that are ours to set.
const OWN_HEADERS: [&str; 5] =
    ["connection", "content-length", "content-type", "host", "transfer-encoding"];
const OWN_PREFIX: &str = "webhook-";

/// What the signing key is called among an action's secrets, and in its configuration.
pub const SIGNING_KEY: &str = "secret";

/// Sends webhooks.
#[derive(Clone, Debug)]
pub struct Webhooks {
    guard: Guard,
}

#[derive(Deserialize)]
struct Config {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    timeout_seconds: Option<f64>,
}

/// What is sent.
pub struct Message {
    /// The same for each time that it is sent.
    pub id: String,
    /// A JSON document.
    pub body: Bytes,
}

/// Why a try came to nothing.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Unsent {
    /// What happened; of the URL it names no more than the host.
    pub reason: String,
    /// Whether another try may come to more.
    pub again: bool,
}

/// A receiver, ready to be sent to.
struct Receiver {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

pub(super) fn definition() -> Definition {
    let schema = json!({
        "type": "object",
        "required": ["url"],
        "additionalProperties": false,
        "properties": {
            "url": {"type": "string", "format": "uri", "maxLength": 2048},
            "secret": {
                "type": "string",
                "description": "The secret with the signing key; `whsec_…` is taken for base64.",
            },
            "headers": {
                "type": "object",
                "maxProperties": MAX_HEADERS,
                "additionalProperties": {"type": "string"},
            },
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 60},
        },
    });
    let description = "Posts a signed message about the job to a URL.";
    (super::WEBHOOK, "Webhook", description, schema, Way::Webhook)
}

/// The signing key, by what it is for.
pub(super) fn secrets(config: &Map<String, Value>) -> BTreeMap<String, String> {
    let secret = config.get(SIGNING_KEY).and_then(Value::as_str);
    secret.map(|secret| (SIGNING_KEY.to_owned(), secret.to_owned())).into_iter().collect()
}

impl Webhooks {
    /// A sender; `allow_private` lets it reach addresses of its own network.
    pub fn new(allow_private: bool) -> Self {
        Self { guard: Guard { allow_private } }
    }

    /// What the schema cannot say.
    pub(super) fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let config: Config = super::read(config)?;
        self.url(&config)?;
        headers(&config).map(drop)
    }

    /// Where to, if that is somewhere we go. What a host name stands for is checked when it is
    /// resolved, each time anew.
    fn url(&self, config: &Config) -> Result<Url, String> {
        let url: Url = config.url.parse().map_err(|error| format!("url: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("url: scheme '{}' is neither http nor https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("url: it must not hold a user or password".to_owned());
        }
        let host = url.host_str().unwrap_or_default();
        // The brackets are the notation's, not the address's.
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            self.guard.check(host, &[address]).map_err(|refused| format!("url: {refused}"))?;
        }
        Ok(url)
    }

    /// Sends a message, again when that may help. A receiver may get it more than once.
    pub(crate) async fn send(
        &self,
        config: &Map<String, Value>,
        secret: Option<&str>,
        message: &Message,
    ) -> Result<(), String> {
        let receiver = self.receiver(config)?;
        let policy = ExponentialBuilder::default()
            .with_min_delay(FIRST_WAIT)
            .with_factor(3.0)
            .with_max_times(TRIES - 1);
        let sent = (|| receiver.post(secret, message))
            .retry(policy)
            .when(|unsent| unsent.again)
            .notify(|unsent, _| tracing::warn!(reason = unsent.reason, "webhook, trying again"))
            .await;
        sent.map_err(|unsent| receiver.named(unsent).reason)
    }

    /// Sends a message once.
    pub async fn send_once(
        &self,
        config: &Map<String, Value>,
        secret: Option<&str>,
        message: &Message,
    ) -> Result<(), Unsent> {
        let receiver = self.receiver(config).map_err(|reason| Unsent { reason, again: false })?;
        let sent = receiver.post(secret, message).await;
        sent.map_err(|unsent| receiver.named(unsent))
    }

    fn receiver(&self, config: &Map<String, Value>) -> Result<Receiver, String> {
        let config: Config = super::read(config)?;
        let (url, headers) = (self.url(&config)?, headers(&config)?);
        let timeout = config.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .dns_resolver(self.guard.clone())
            // A proxy would resolve names itself, and could reach what we must not.
            .no_proxy()
            .timeout(Duration::try_from_secs_f64(timeout).map_err(|error| error.to_string())?)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Receiver { client, url, headers })
    }
}

impl Receiver {
    /// Only the host: the rest of a URL is often as good as a key.
    fn named(&self, unsent: Unsent) -> Unsent {
        let host = self.url.host_str().unwrap_or_default();
        Unsent { reason: format!("{host}: {}", unsent.reason), ..unsent }
    }

    async fn post(&self, secret: Option<&str>, message: &Message) -> Result<(), Unsent> {
        let timestamp = Timestamp::now().as_second();
        let mut request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", timestamp)
            .body(message.body.clone());
        if let Some(secret) = secret {
            let signature = signature::sign(secret, &message.id, timestamp, &message.body)
                .map_err(|reason| Unsent { reason, again: false })?;
            request = request.header("webhook-signature", signature);
        }
        let mut response = request.send().await.map_err(unsent)?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let mut quoted = Vec::new();
        while quoted.len() < QUOTED_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            quoted.extend_from_slice(&chunk[..chunk.len().min(QUOTED_BYTES)]);
        }
        let mut reason = format!("it answered {status}");
        if status.is_redirection() {
            reason.push_str("; redirects are not followed");
        } else if !quoted.is_empty() {
            reason.push_str(&format!(": {}", String::from_utf8_lossy(&quoted).trim()));
        }
        let again = status.is_server_error()
            || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        Err(Unsent { reason, again })
    }
}

/// The innermost reason is the one that says something; the outer ones repeat the URL.
fn unsent(error: reqwest::Error) -> Unsent {
    let timed_out = error.is_timeout();
    let mut cause: &dyn std::error::Error = &error.without_url();
    loop {
        if cause.is::<Private>() {
            return Unsent { reason: cause.to_string(), again: false };
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None if timed_out => {
                return Unsent { reason: "it did not answer in time".to_owned(), again: true };
            }
            None => return Unsent { reason: cause.to_string(), again: true },
        }
    }
}

fn headers(config: &Config) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let refuse = |reason: &str| format!("headers.{name}: {reason}");
        let key: HeaderName = name.parse().map_err(|_| refuse("it is no header name"))?;
        if OWN_HEADERS.contains(&key.as_str()) || key.as_str().starts_with(OWN_PREFIX) {
            return Err(refuse("the platform sets this header"));
        }
        let value = HeaderValue::from_str(value);
        headers.insert(key, value.map_err(|_| refuse("its value is none that a header can have"))?);
    }
    Ok(headers)
}
