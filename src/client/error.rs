//! Why a request failed: what happened, which request it was, and how to mend it.
//!
//! The labels are those of the reference's command line, which scripts look for.

use std::path::PathBuf;

use reqwest::StatusCode;
use serde_json::Value;

use crate::exit::Exit;

/// The most of an answer that is not ours, such as a proxy's page.
const LONGEST_FOREIGN_ANSWER: usize = 2000;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused it, or failed.
    #[error("{}: ({}) {detail}", label(*status), status.as_u16())]
    Refused {
        /// The status.
        status: StatusCode,
        /// What the server says.
        detail: String,
        /// Method and address.
        request: String,
    },
    /// The server cannot be reached, or broke off.
    #[error("Connection error: cannot reach {base}: {reason}")]
    Unreachable {
        /// The server.
        base: String,
        /// The innermost cause.
        reason: String,
        /// Whether the request may have reached it.
        sent: bool,
        /// Method and address.
        request: String,
    },
    /// The answer is not what it should be.
    #[error("API response error: {reason}")]
    Answer {
        /// What is wrong with it.
        reason: String,
        /// Method and address.
        request: String,
    },
    /// A local file.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
}

impl Error {
    /// An answer that is no success.
    pub(super) fn answered(status: StatusCode, body: &str, request: String) -> Self {
        Self::Refused { status, detail: detail(body, status), request }
    }

    /// No answer, or half of one.
    pub(super) fn unreachable(base: &str, request: &str, error: &reqwest::Error) -> Self {
        Self::Unreachable {
            base: base.to_owned(),
            reason: innermost(error),
            sent: !error.is_connect(),
            request: request.to_owned(),
        }
    }

    /// How the program ends because of it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused { status, .. } if *status == StatusCode::NOT_FOUND => Exit::NotFound,
            Self::Refused { status, .. } if status.is_client_error() => Exit::Refused,
            Self::Refused { .. } | Self::Unreachable { .. } | Self::Answer { .. } => {
                Exit::Unreachable
            }
            Self::File { .. } => Exit::Failed,
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Answer { .. } | Self::File { .. } => false,
        }
    }

    /// Whether the server lives and has no room just now.
    pub fn is_for_want_of_room(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Whether the request may have been carried out and the answer be lost: broken off, or held
    /// back by a gateway that got none.
    pub(super) fn is_lost_answer(&self) -> bool {
        match self {
            Self::Unreachable { sent, .. } => *sent,
            Self::Refused { status, .. } => {
                matches!(*status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
            }
            Self::Answer { .. } | Self::File { .. } => false,
        }
    }

    /// Whether the server says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.exit() == Exit::NotFound
    }

    /// Whether what was to be made is there already.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::CONFLICT)
    }

    /// The request that failed and how to mend it, a line each.
    pub fn advice(&self) -> Vec<String> {
        let (request, hint) = match self {
            Self::Refused { status, request, .. } => (request, hint(*status)),
            Self::Unreachable { request, .. } => (
                request,
                Some(
                    "start the platform with `errand up`, or name another server with \
                      --base-url or --context",
                ),
            ),
            Self::Answer { request, .. } => {
                (request, Some("check that --base-url leads to an errand server"))
            }
            Self::File { .. } => return Vec::new(),
        };
        let request = (!request.is_empty()).then(|| format!("Request: {request}"));
        request.into_iter().chain(hint.map(|hint| format!("Hint: {hint}"))).collect()
    }
}

fn label(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "Bad request",
        401 => "Authentication error",
        403 => "Permission denied",
        404 => "Not found",
        409 => "Conflict",
        422 => "Invalid input",
        429 => "Rate limit exceeded",
        500.. => "Server error",
        _ => "API error",
    }
}

/// How to mend it. Where the server's own words say it, there is none.
fn hint(status: StatusCode) -> Option<&'static str> {
    match status.as_u16() {
        401 => Some("set ERRAND_TOKEN, or store it with `errand config set --token-from-env`"),
        403 => Some("ask for a role in the workspace, or use another token or --context"),
        404 => Some("check the name, and the workspace (-w NAME or `errand config set -w NAME`)"),
        413 => Some("put what is large into a fileset and name that"),
        429 => Some("wait a little and try again"),
        500.. => Some("the server's log says why; `errand doctor` checks what it needs"),
        _ => None,
    }
}

/// The innermost cause of an error; the outermost often says nothing.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// What the server says: the text of `detail`, or its validation list, an entry a line.
fn detail(body: &str, status: StatusCode) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let said = if parsed["detail"].is_null() { &parsed["message"] } else { &parsed["detail"] };
    match said {
        Value::String(text) => text.clone(),
        Value::Array(entries) => match entries.as_slice() {
            [one] => validation_line(one),
            several => {
                let lines = several.iter().map(|entry| format!("\n  {}", validation_line(entry)));
                format!("{} things are wrong:{}", several.len(), lines.collect::<String>())
            }
        },
        Value::Null if body.trim().is_empty() => {
            status.canonical_reason().unwrap_or("no reason given").to_owned()
        }
        Value::Null => body.trim().chars().take(LONGEST_FOREIGN_ANSWER).collect(),
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
