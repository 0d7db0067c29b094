//! `POST …/jobs/execute`: makes a job and says that it was submitted.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::Value;
use streams::broker;

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError};
use super::job_view;
use crate::catalog::name_taken;
use crate::records::{Admitted, Job};
use crate::submission::submit;

/// How long submissions are refused after the queue said that it is full.
const FULL_FOR: Duration = Duration::from_secs(2);

/// Remembers that the queue was full, so that a submission is refused before it is recorded.
#[derive(Debug, Default)]
pub(super) struct Intake(Mutex<Option<Instant>>);

impl Intake {
    fn is_full(&self) -> bool {
        let full_at = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        full_at.is_some_and(|at| at.elapsed() < FULL_FOR)
    }

    fn note(&self, full_at: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = full_at;
    }
}

/// Makes a job.
pub(super) async fn create(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    body: Body,
) -> Answer<(StatusCode, Json<Value>)> {
    if api.intake.is_full() {
        let detail = "Too many submissions wait. Running jobs go on; try again later.";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    let new = api.catalog.prepare(&workspace, &body.0).await?;
    let name = new.name.clone();
    match api.records.jobs().admit(new).await? {
        Admitted::Fresh(job) | Admitted::Known(job) => {
            publish(&api, &job).await;
            Ok((StatusCode::CREATED, Json(job_view::typed(&job))))
        }
        Admitted::NameTaken => Err(ApiError::conflict(name_taken(&name, &workspace))),
        Admitted::Deleted => Err(ApiError::internal(format!("a new id of job '{name}' is taken"))),
    }
}

/// Publishes the first fact. The job is made whether or not that works: the sweeper publishes
/// for records that never saw a fact.
async fn publish(api: &Api, job: &Job) {
    match submit(&*api.broker, job).await {
        Ok(()) => api.intake.note(None),
        Err(error) => {
            if matches!(error, broker::Error::Full(_)) {
                api.intake.note(Some(Instant::now()));
            }
            tracing::warn!(job.id = %job.id, %error, "submission is recorded but not yet published");
        }
    }
}
