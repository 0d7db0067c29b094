//! Forms: an upload whose file is a field, as browsers and the reference's clients may send it.

use axum::RequestExt;
use axum::extract::multipart::Field;
use axum::extract::{Multipart, Request};
use axum::http::{HeaderMap, header};
use serde_json::Value;

use super::error::{Answer, ApiError};
use crate::catalog::Violation;

/// The field that is the file.
const FILE: &str = "file";

/// Whether the body is a form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("multipart/form-data"))
}

/// Opens the form.
pub(super) async fn form(request: Request) -> Answer<Multipart> {
    request.extract::<Multipart, _>().await.map_err(|error| unreadable(&error.body_text()))
}

/// The file, which must come first: what stands before it would have to be read to its end.
pub(super) async fn file(form: &mut Multipart) -> Answer<Field<'_>> {
    let first = form.next_field().await.map_err(|error| unreadable(&error.body_text()))?;
    first.filter(|field| field.name() == Some(FILE)).ok_or_else(|| {
        let loc = ["body".into(), FILE.into()];
        let text = "the first field of the form must be 'file'";
        ApiError::invalid(vec![Violation::rule(&loc, text, &Value::Null)])
    })
}

fn unreadable(reason: &str) -> ApiError {
    ApiError::bad_request(format!("The form cannot be read: {reason}"))
}
