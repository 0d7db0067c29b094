//! JSON bodies: taken whole, and read by a table.

use axum::body::{Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde_json::{Map, Value, json};

use super::error::{Answer, ApiError};
use crate::catalog::Violation;
use crate::catalog::shape::{self, Shape, Table, amount};

/// Bytes that a JSON body may have.
#[derive(Clone, Copy)]
pub(super) struct Limit(pub(super) usize);

/// A JSON body, not yet read.
pub(super) struct Body(pub(super) Value);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let is_json = is_json(&request);
        let limit = request.extensions().get().copied();
        let bytes =
            Bytes::from_request(request, state).await.map_err(|rejection| {
                match rejection.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => too_large(limit),
                    status => ApiError::new(status, rejection.body_text()),
                }
            })?;
        if !is_json && !bytes.is_empty() {
            let sent = String::from_utf8_lossy(&bytes).into_owned();
            let msg = "Input should be a valid dictionary or object to extract fields from";
            let loc = ["body".into()];
            let entry = Violation::new("model_attributes_type", &loc, msg, &json!(sent));
            return Err(invalid(entry));
        }
        Self::parse(&bytes)
    }
}

impl Body {
    /// Takes the bytes of a document.
    pub(super) fn parse(bytes: &[u8]) -> Answer<Self> {
        if amount::of_text(bytes) > amount::MAX_VALUES {
            let entry = Violation::rule(&["body".into()], &amount::too_many(), &Value::Null);
            return Err(invalid(entry));
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Null) => Err(invalid(Violation::missing(&["body".into()], &Value::Null))),
            Ok(value) => Ok(Self(value)),
            Err(_) if bytes.is_empty() => {
                Err(invalid(Violation::missing(&["body".into()], &Value::Null)))
            }
            Err(error) => Err(invalid(malformed(bytes, &error))),
        }
    }

    /// Reads the body by a table.
    pub(super) fn read(&self, table: &'static Table) -> Answer<Value> {
        shape::read(&Shape::Object(table), &self.0, &["body".into()]).map_err(ApiError::invalid)
    }

    /// The body as an object of whatever fields.
    pub(super) fn object(self) -> Answer<Map<String, Value>> {
        if let Some(violation) = shape::too_deep(&self.0, &["body".into()]) {
            return Err(invalid(violation));
        }
        match self.0 {
            Value::Object(fields) => Ok(fields),
            other => {
                let msg = "Input should be a valid dictionary";
                Err(invalid(Violation::new("dict_type", &["body".into()], msg, &other)))
            }
        }
    }
}

/// The same that may be absent, which stands for an object without fields.
pub(super) struct MaybeBody(Body);

impl<S: Send + Sync> FromRequest<S> for MaybeBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        if request.body().is_end_stream() {
            return Ok(Self(Body(json!({}))));
        }
        Body::from_request(request, state).await.map(Self)
    }
}

impl MaybeBody {
    /// Reads the body by a table.
    pub(super) fn read(&self, table: &'static Table) -> Answer<Value> {
        self.0.read(table)
    }
}

/// The answer to a document that is longer than what is taken.
pub(super) fn too_large(limit: Option<Limit>) -> ApiError {
    let limit = limit.map_or_else(String::new, |limit| format!(" of {} bytes", limit.0));
    let text = format!("The request body is over the limit{limit}");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn invalid(violation: Violation) -> ApiError {
    ApiError::invalid(vec![violation])
}

fn is_json(request: &Request) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.ends_with("+json")
}

/// Says where the JSON ends to make sense, and what stands there.
fn malformed(bytes: &[u8], error: &serde_json::Error) -> Violation {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let offset = (before + error.column().saturating_sub(1)).min(bytes.len());
    let around = &bytes[offset.saturating_sub(40)..(offset + 10).min(bytes.len())];
    let text = format!("{error}, near '{}'", String::from_utf8_lossy(around));
    let loc = ["body".into(), shape::Loc::Index(offset)];
    Violation::new("json_invalid", &loc, "JSON decode error", &json!({}))
        .with(json!({"error": text}))
}
