//! What a failed request is answered with. Records and store say why in the log, not to callers.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::catalog::{Refusal, Violation};
use crate::files;
use crate::records;
use crate::removal;

/// The answer to a request that failed.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    detail: Value,
    /// The size of what has no such range.
    size: Option<u64>,
}

pub(super) type Answer<T = Response> = Result<T, ApiError>;

impl ApiError {
    /// An answer with a sentence.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: Value::String(detail.into()), size: None }
    }

    /// 400.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 403.
    ///
    /// This is also the one status of routes that the reference has for its own parts and that
    /// nobody may use here: the request is understood and will never be granted. A 409 would say
    /// that another time may be better, a 422 that another body would be.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// 404.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 409.
    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// 416, with the size that ranges can be of.
    pub(super) fn no_range(size: u64, detail: impl Into<String>) -> Self {
        Self { size: Some(size), ..Self::new(StatusCode::RANGE_NOT_SATISFIABLE, detail) }
    }

    /// 422 with a sentence.
    pub(super) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// 422 with the list of all that is wrong.
    pub(super) fn invalid(violations: Vec<Violation>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, detail: json!(violations), size: None }
    }

    /// The status, and what is said under `detail`.
    pub(super) fn parts(self) -> (u16, Value) {
        (self.status.as_u16(), self.detail)
    }

    /// The same without what was sent, for bodies that hold secrets.
    pub(super) fn without_inputs(mut self) -> Self {
        for entry in self.detail.as_array_mut().into_iter().flatten() {
            entry["input"] = json!("***");
            // Where a body is no JSON, this quotes what stands there.
            if entry["type"] == "json_invalid" {
                entry["ctx"] = json!({"error": "***"});
            }
        }
        self
    }

    /// Whether the same request may succeed later.
    pub(super) fn is_unavailable(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Status and detail, for an answer that carries those of several requests.
    pub(super) fn into_parts(self) -> (StatusCode, Value) {
        (self.status, self.detail)
    }

    /// 404 for a workspace.
    pub(super) fn no_workspace(workspace: &str) -> Self {
        Self::not_found(format!("Workspace '{workspace}' not found"))
    }

    /// 500: our fault. The reason goes to the log.
    pub(super) fn internal(reason: impl std::fmt::Display) -> Self {
        tracing::error!(error = %reason, "request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred.")
    }

    /// 503: something that we need does not answer. The reason goes to the log.
    pub(super) fn unavailable(reason: impl std::fmt::Display) -> Self {
        tracing::error!(error = %reason, "request failed for want of a dependency");
        let detail = "The platform cannot reach a part of itself. Try again later.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"detail": self.detail}))).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(range) = self.size.and_then(|it| format!("bytes */{it}").parse().ok()) {
            headers.insert(header::CONTENT_RANGE, range);
        }
        response
    }
}

impl From<records::Error> for ApiError {
    /// For errors that the caller did not expect: a name that is or is not there has an answer
    /// of its own wherever it can happen.
    fn from(error: records::Error) -> Self {
        match error {
            records::Error::Text(text) => Self::unprocessable(text),
            records::Error::Unavailable(_) | records::Error::Busy(_) => Self::unavailable(error),
            records::Error::Conflict
            | records::Error::NotFound
            | records::Error::Corrupt { .. } => Self::internal(error),
        }
    }
}

impl From<workers::store::Error> for ApiError {
    fn from(error: workers::store::Error) -> Self {
        Self::unavailable(error)
    }
}

impl From<streams::broker::Error> for ApiError {
    fn from(error: streams::broker::Error) -> Self {
        Self::unavailable(error)
    }
}

impl From<files::Error> for ApiError {
    fn from(error: files::Error) -> Self {
        match error {
            files::Error::InTheWay(_) => Self::conflict(error.to_string()),
            files::Error::BrokenOff { .. } => Self::bad_request(error.to_string()),
            files::Error::Records(error) => error.into(),
            files::Error::Store(error) => error.into(),
        }
    }
}

impl From<removal::Error> for ApiError {
    fn from(error: removal::Error) -> Self {
        match error {
            removal::Error::Records(error) => error.into(),
            removal::Error::Broker(error) => error.into(),
            removal::Error::Store(error) => error.into(),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::Invalid(violations) => Self::invalid(violations),
            Refusal::Transform(_) | Refusal::Compile(_) | Refusal::Unprocessable(_) => {
                Self::unprocessable(text)
            }
            Refusal::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, text),
            Refusal::NotFound(_) => Self::not_found(text),
            Refusal::Forbidden(_) => Self::forbidden(text),
            Refusal::Conflict(_) => Self::conflict(text),
            Refusal::Unavailable(_) => Self::unavailable(text),
        }
    }
}

/// Answers a record that is not there with a 404, and passes on the rest.
pub(super) fn or_not_found<T>(
    found: records::Result<T>,
    detail: impl FnOnce() -> String,
) -> Answer<T> {
    found.map_err(|error| match error {
        // A name that the database cannot even keep is not there either.
        records::Error::NotFound | records::Error::Text(_) => ApiError::not_found(detail()),
        error => error.into(),
    })
}

/// The same for a change: what cannot be kept then is what was sent, and that is said.
pub(super) fn or_gone<T>(
    changed: records::Result<T>,
    detail: impl FnOnce() -> String,
) -> Answer<T> {
    changed.map_err(|error| match error {
        records::Error::NotFound => ApiError::not_found(detail()),
        error => error.into(),
    })
}

/// Answers a name that is taken with a 409, and passes on the rest.
pub(super) fn or_conflict<T>(
    made: records::Result<T>,
    detail: impl FnOnce() -> String,
) -> Answer<T> {
    made.map_err(|error| match error {
        records::Error::Conflict => ApiError::conflict(detail()),
        error => error.into(),
    })
}
