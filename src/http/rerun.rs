//! `POST …/jobs/{name}/rerun`: makes a job of another one's snapshot. Nothing is resolved anew:
//! the same pinned agent and files, the same references to secrets; only its deadlines are fresh.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use streams::id::JobId;
use streams::snapshot::{QueueLimit, Snapshot};

use super::Api;
use super::body::MaybeBody;
use super::error::{Answer, ApiError};
use super::filter::Collection;
use super::idempotency::{self, IdempotencyKey};
use super::jobs::find;
use crate::catalog::names;
use crate::catalog::request::{NAME, fits_a_job};
use crate::catalog::shape::{Absent, Table, Unknown, field};
use crate::records::{Job, NewJob};

pub(super) const BODY: Table = Table {
    fields: &[field("name", NAME, Absent::Null)],
    unknown: Unknown::Refused,
    rule: |rerun| rerun["name"].as_str().map_or(Ok(()), fits_a_job),
};

/// Makes a job that runs another one once more.
pub(super) async fn rerun(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    collection: Collection,
    key: IdempotencyKey,
    body: MaybeBody,
) -> Answer<(StatusCode, Json<Value>)> {
    let asked = body.read(&BODY)?;
    let first = find(&api, &workspace, &name).await?;
    let request = json!({"rerun": first.id, "asked": asked});
    let prepare = async { prepare(&first, asked["name"].as_str()) };
    let job = idempotency::make(&api, &workspace, key, &request, prepare).await?;
    Ok((StatusCode::CREATED, Json(collection.show(&job))))
}

fn prepare(first: &Job, name: Option<&str>) -> Answer<NewJob> {
    let Some(snapshot) = &first.snapshot else {
        return Err(ApiError::conflict(format!(
            "Job '{}' has nothing that could be run once more: {} Submit a new job.",
            first.name,
            first.refused.as_deref().unwrap_or("its record holds no snapshot.")
        )));
    };
    let id = JobId::new();
    let name = name.map_or_else(|| names::generated(id), str::to_owned);
    let queue_limit = snapshot.queue_limit.and_then(|limit| QueueLimit::from_now(limit.seconds));
    let snapshot = Snapshot { name: name.clone(), queue_limit, ..snapshot.clone() };
    Ok(NewJob {
        id,
        name,
        workspace: first.workspace.clone(),
        project: first.project.clone(),
        description: first.description.clone(),
        source: first.source.clone(),
        agent_ref: first.agent_ref.clone(),
        request: first.request.clone(),
        snapshot: Ok(snapshot),
        ownership: first.ownership.clone(),
        custom_fields: first.custom_fields.clone(),
        output_location: first.output_location.clone(),
        submission: None,
        rerun_of: Some(first.id),
        created_at: Timestamp::now(),
    })
}
