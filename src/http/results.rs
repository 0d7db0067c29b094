//! Results of jobs: what there is, and the bytes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use streams::fact::{OutputChanges, ResultKind};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_not_found};
use super::filter::Collection;
use super::list::{Pairs, Rules, TooSmall};
use super::range::Part;
use super::{job_view, jobs, range, time};
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};
use crate::records::{self, Direction, Job, ResultRow};

const RULES: Rules = Rules {
    page_size: 10,
    max_page_size: 1000,
    too_small: TooSmall::GreaterThan,
    sort: &["created_at", "updated_at"],
    pages_of_nothing: 1,
};

pub(super) const NEW: Table = Table {
    fields: &[
        field("artifact_url", Shape::Text, Absent::Refused),
        field("artifact_storage_type", Shape::Words(&["fileset"]), Absent::Refused),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

/// Lists a job's results, the newest first.
pub(super) async fn list(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    uri: Uri,
    collection: Collection,
    headers: HeaderMap,
    query: Pairs,
) -> Answer<Json<Value>> {
    let asked = query.asked(&RULES)?;
    let job = jobs::find(&api, &workspace, &name).await?;
    let mut rows = api.records.jobs().results(job.id).await?;
    if asked.sort.direction == Direction::Descending {
        rows.reverse();
    }
    let show = |row: &ResultRow| {
        let url = collection.download_url(&headers, &uri, &format!("/{}/download", row.name));
        result(&job, row, url)
    };
    Ok(Json(json!({"data": rows.iter().map(show).collect::<Vec<_>>()})))
}

/// One result.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name, wanted)): Path<(String, String, String)>,
    uri: Uri,
    collection: Collection,
    headers: HeaderMap,
) -> Answer<Json<Value>> {
    let (job, row) = find(&api, &workspace, &name, &wanted).await?;
    let url = collection.download_url(&headers, &uri, "/download");
    Ok(Json(result(&job, &row, url)))
}

/// Refuses to add one: a result is listed only after the platform has verified what it saved.
pub(super) async fn create(
    State(api): State<Api>,
    Path((workspace, name, wanted)): Path<(String, String, String)>,
    body: Body,
) -> Answer<()> {
    body.read(&NEW)?;
    let job = jobs::find(&api, &workspace, &name).await?;
    match api.records.jobs().result(job.id, &wanted).await {
        Ok(_) => Err(ApiError::conflict(format!(
            "Entity with name '{wanted}' already exists in workspace '{workspace}'"
        ))),
        Err(records::Error::NotFound | records::Error::Text(_)) => {
            let reason = "the platform saves what the agent leaves behind, and lists nothing else";
            let detail = format!("Result '{wanted}' cannot be added to job '{name}': {reason}");
            Err(ApiError::forbidden(detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// What the agent changed in its working directory: all of it, however much that is.
pub(super) async fn changes(
    State(api): State<Api>,
    Path((workspace, name, wanted)): Path<(String, String, String)>,
) -> Answer {
    let (_, row) = find(&api, &workspace, &name, &wanted).await?;
    let Some(changes) = row.saved.output_changes else {
        let reason = "only the output_workdir of jobs that could be compared has one";
        let detail = format!("Result '{wanted}' of job '{name}' has no list of changes: {reason}");
        return Err(ApiError::not_found(detail));
    };
    let Some(all) = &changes.all else { return Ok(Json(changed(&changes)).into_response()) };
    let json = HeaderValue::from_static("application/json");
    let headers = [(header::CONTENT_TYPE, json), (header::CONTENT_LENGTH, all.size.into())];
    let opened = api.store.fetch(all).await?;
    let opened =
        opened.ok_or_else(|| ApiError::internal(format!("object '{}' is gone", all.key)))?;
    Ok(range::stream(StatusCode::OK, headers.into_iter().collect(), opened))
}

/// Its bytes.
pub(super) async fn download(
    State(api): State<Api>,
    Path((workspace, name, wanted)): Path<(String, String, String)>,
    asked: HeaderMap,
) -> Answer {
    let (_, row) = find(&api, &workspace, &name, &wanted).await?;
    let part = part(&row, &asked)?;
    let object = &row.saved.object;
    let opened = api.store.fetch_range(object, part.range).await?;
    let opened =
        opened.ok_or_else(|| ApiError::internal(format!("object '{}' is gone", object.key)))?;
    Ok(part.stream(opened))
}

/// The part that is asked for, and the headers of the answer.
fn part(row: &ResultRow, asked: &HeaderMap) -> Answer<Part> {
    let object = &row.saved.object;
    let etag = range::etag(&object.sha256)?;
    let saved_at = row.saved.saved_at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let saved_at = range::value(&saved_at)?;
    let mut part = range::part(asked, object.size, &[&etag, &saved_at])?;
    let (kind, extension) = match row.saved.kind {
        ResultKind::Directory => ("application/x-tar", ".tar.gz"),
        ResultKind::File => ("application/octet-stream", ""),
    };
    let name = format!("attachment; filename=\"{}{extension}\"", row.name);
    part.headers.insert(header::CONTENT_TYPE, range::value(kind)?);
    part.headers.insert(header::CONTENT_DISPOSITION, range::value(&name)?);
    part.headers.insert(header::ETAG, etag);
    part.headers.insert(header::LAST_MODIFIED, saved_at);
    part.headers.insert("x-errand-sha256", range::value(&object.sha256)?);
    Ok(part)
}

async fn find(api: &Api, workspace: &str, name: &str, wanted: &str) -> Answer<(Job, ResultRow)> {
    let missing =
        || format!("Result '{wanted}' for job '{name}' not found in workspace '{workspace}'.");
    let job = or_not_found(api.records.jobs().get(workspace, name).await, missing)?;
    let row = or_not_found(api.records.jobs().result(job.id, wanted).await, missing)?;
    Ok((job, row))
}

/// Where a result is within the job's fileset.
pub(super) fn place(job: &Job, row: &ResultRow) -> String {
    format!("results/{}/{}", job.attempt_id, row.name)
}

fn result(job: &Job, row: &ResultRow, download_url: Option<String>) -> Value {
    let saved = &row.saved;
    let url = format!("{}/{}#{}", job.workspace, job_view::fileset(job), place(job, row));
    json!({
        "name": row.name,
        "job": job.id.http(),
        "workspace": job.workspace,
        "project": job.project,
        "created_at": time(row.created_at),
        "updated_at": time(row.created_at),
        "artifact_url": url,
        "artifact_storage_type": "fileset",
        "download_url": download_url,
        "kind": saved.kind,
        "size": saved.object.size,
        "sha256": saved.object.sha256,
        "complete": saved.complete,
        "skipped": saved.skipped,
        "skipped_more": saved.skipped_more,
        "changed_while_saved": saved.changed_while_saved,
        "secret_detected": saved.secret_detected,
        "secret_search_complete": !saved.unsearched,
        "output_changes": saved.output_changes.as_ref().map(changed),
    })
}

/// The paths that ride in the fact, and how many there are.
fn changed(changes: &OutputChanges) -> Value {
    let [added, modified, deleted] = changes.totals;
    json!({
        "added": changes.added,
        "modified": changes.modified,
        "deleted": changes.deleted,
        "totals": {"added": added, "modified": modified, "deleted": deleted},
    })
}

impl Collection {
    /// Where a result is downloaded from: below this request's own address. Only the execute
    /// collection says so.
    fn download_url(self, headers: &HeaderMap, uri: &Uri, rest: &str) -> Option<String> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        match (self, host) {
            (Self::Typed, Some(host)) => Some(format!("http://{host}{}{rest}", uri.path())),
            _ => None,
        }
    }
}
