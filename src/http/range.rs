//! Byte ranges of downloads, and the answer that carries them.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use workers::store::Object;

use super::error::{Answer, ApiError};

/// The part of an object that is answered with, and the headers of the answer.
pub(super) struct Part {
    /// First and last byte, both included; `None` is all.
    pub(super) range: Option<(u64, u64)>,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// The part of an object that is asked for.
pub(super) fn part(asked: &HeaderMap, size: u64, validators: &[&HeaderValue]) -> Answer<Part> {
    let range = self::asked(asked, size, validators)?;
    let (status, headers) = headers(size, range)?;
    Ok(Part { range, status, headers })
}

/// What part of an object is asked for: first and last byte, both included. `None` is all, also
/// when the caller has a part of something else than what `validators` name. Of several ranges
/// the first is served.
fn asked(
    headers: &HeaderMap,
    size: u64,
    validators: &[&HeaderValue],
) -> Answer<Option<(u64, u64)>> {
    let Some(header) = headers.get(header::RANGE) else { return Ok(None) };
    if headers.get(header::IF_RANGE).is_some_and(|wanted| !validators.contains(&wanted)) {
        return Ok(None);
    }
    let text = header.to_str().unwrap_or_default();
    match parse(text, size) {
        Some(range) => Ok(Some(range)),
        None => {
            let detail = format!("Invalid range: {}", String::from_utf8_lossy(header.as_bytes()));
            Err(ApiError::no_range(size, detail))
        }
    }
}

fn parse(text: &str, size: u64) -> Option<(u64, u64)> {
    let first = text.strip_prefix("bytes=")?.split(',').next()?.trim();
    let (from, to) = first.split_once('-')?;
    let last = size.checked_sub(1)?;
    let number = |digits: &str| {
        let well = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // A number beyond u64 lies beyond the end, too.
        well.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let (from, to) = match (from, to) {
        ("", tail) => (size - number(tail).filter(|tail| *tail > 0)?.min(size), last),
        (from, "") => (number(from)?, last),
        (from, to) => (number(from)?, number(to)?.min(last)),
    };
    (from <= to && from <= last).then_some((from, to))
}

/// The headers that both a whole and a partial answer have.
fn headers(size: u64, range: Option<(u64, u64)>) -> Answer<(StatusCode, HeaderMap)> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let Some((from, to)) = range else {
        headers.insert(header::CONTENT_LENGTH, size.into());
        return Ok((StatusCode::OK, headers));
    };
    headers.insert(header::CONTENT_LENGTH, (to - from + 1).into());
    headers.insert(header::CONTENT_RANGE, value(&format!("bytes {from}-{to}/{size}"))?);
    Ok((StatusCode::PARTIAL_CONTENT, headers))
}

impl Part {
    /// Answers with the bytes of the opened part.
    pub(super) fn stream(self, object: Object) -> Response {
        stream(self.status, self.headers, object)
    }

    /// Answers without them.
    pub(super) fn head(self) -> Response {
        (self.status, self.headers).into_response()
    }
}

/// Streams what was opened.
pub(super) fn stream(status: StatusCode, headers: HeaderMap, object: Object) -> Response {
    (status, headers, Body::from_stream(object.body)).into_response()
}

/// What names the bytes of an object, by their digest.
pub(super) fn etag(sha256: &str) -> Answer<HeaderValue> {
    value(&format!("\"{sha256}\""))
}

/// Text as a header's value.
pub(super) fn value(text: &str) -> Answer<HeaderValue> {
    HeaderValue::from_str(text).map_err(ApiError::internal)
}

#[cfg(test)]
mod tests;
