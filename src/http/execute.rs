//! `POST …/jobs/execute`: makes a job and says that it was submitted.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::Value;

use super::Api;
use super::body::Body;
use super::error::Answer;
use super::idempotency::{self, IdempotencyKey};
use super::job_view;
use crate::auth::Caller;

/// Makes a job.
pub(super) async fn create(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    Extension(caller): Extension<Caller>,
    key: IdempotencyKey,
    body: Body,
) -> Answer<(StatusCode, Json<Value>)> {
    let prepare = async { Ok(api.catalog.prepare(&caller, &workspace, &body.0).await?) };
    let job = idempotency::make(&api, &workspace, key, &body.0, prepare).await?;
    Ok((StatusCode::CREATED, Json(job_view::typed(&job))))
}
