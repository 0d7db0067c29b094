//! Filesets: the records. Their files are in `files`.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_conflict, or_gone, or_not_found};
use super::filter;
use super::list::{Pairs, Rules, TooSmall, without_nulls};
use super::{job_files, time, workspaces};
use crate::auth::Caller;
use crate::catalog::request::NAME;
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};
use crate::catalog::{ethos, refs};
use crate::records::filter::FILESETS;
use crate::records::{self, Fileset, FilesetChange, Job, NewFileset};

const PURPOSE: Shape = Shape::Words(&["dataset", "environment", "generic", "model"]);

pub(super) const NEW: Table = Table {
    fields: &[
        field("name", NAME, Absent::Refused),
        field("description", Shape::Short { most: 255 }, Absent::Text("")),
        field("project", Shape::Text, Absent::Text("")),
        field("storage", Shape::Dict, Absent::Null),
        field("purpose", PURPOSE, Absent::Text("generic")),
        field("metadata", Shape::Object(&METADATA), Absent::Object),
        field("custom_fields", Shape::Dict, Absent::Object),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

/// Fields that are absent stay as they are; only a null description empties it.
pub(super) const CHANGE: Table = Table {
    fields: &[
        field("description", Shape::Short { most: 255 }, Absent::Dropped),
        field("project", Shape::Text, Absent::Dropped),
        field("purpose", PURPOSE, Absent::Dropped),
        field("metadata", Shape::Object(&METADATA), Absent::Dropped),
        field("custom_fields", Shape::Dict, Absent::Dropped),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

const METADATA: Table = Table {
    fields: &[
        field("dataset", Shape::Dict, Absent::Null),
        field("model", Shape::Dict, Absent::Null),
        field("environment", Shape::Dict, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

const RULES: Rules = Rules {
    page_size: 10,
    max_page_size: 100,
    too_small: TooSmall::AtLeast,
    sort: &["created_at", "updated_at", "name"],
    pages_of_nothing: 0,
};

/// Makes one.
pub(super) async fn create(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Answer<Json<Value>> {
    let mut new = body.read(&NEW)?;
    match new["storage"]["type"].as_str() {
        None if new["storage"].is_null() => {}
        Some("local") => {
            return Err(ApiError::bad_request(
                "Creating filesets with local storage is not allowed. Use NGC, HuggingFace, or \
                 omit storage to use the default backend.",
            ));
        }
        _ => {
            return Err(ApiError::bad_request(
                "Only the default storage is supported; omit storage.",
            ));
        }
    }
    workspaces::check(&api, &workspace).await?;
    let name = text(&new["name"]);
    if let Some(job) = name.strip_prefix(refs::JOB_FILESET) {
        return Err(ApiError::forbidden(format!(
            "Fileset names beginning with '{}' are kept for the results of jobs, '{name}' for \
             those of '{job}'",
            refs::JOB_FILESET
        )));
    }
    ethos::may_write(&caller, &workspace, &name)?;
    let new = NewFileset {
        name: name.clone(),
        workspace: workspace.clone(),
        description: text(&new["description"]),
        purpose: text(&new["purpose"]),
        project: String::new(),
        metadata: new["metadata"].take(),
        custom_fields: new["custom_fields"].take(),
    };
    let made = api.records.filesets().insert(new).await;
    let made = or_conflict(made, || format!("Fileset '{workspace}/{name}' already exists"))?;
    Ok(Json(show(&made)))
}

/// Lists them.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    query: Pairs,
) -> Answer<Json<Value>> {
    let asked = query.asked(&RULES)?;
    let wanted = filter::plain(&FILESETS).read(&query)?;
    let workspace = workspaces::listed(&api, &workspace).await?;
    let select = asked.select(wanted.condition);
    let listed = api.records.filesets().list(workspace, &select).await?;
    let envelope = asked.envelope(listed, |fileset| {
        let mut shown = show(&fileset);
        shown["metadata"] = without_nulls(shown["metadata"].take());
        shown
    });
    Ok(Json(Value::Object(envelope)))
}

/// One.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    Ok(Json(match find(&api, &workspace, &name).await? {
        Found::Stored(fileset) => show(&fileset),
        Found::OfJob(job) => job_files::fileset(&job),
    }))
}

/// Changes what is said about one.
pub(super) async fn update(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Answer<Json<Value>> {
    let mut change = body.read(&CHANGE)?;
    writable(&api, &caller, &workspace, &name).await?;
    let emptied = body.0.get("description").is_some_and(Value::is_null);
    let mut given = |key: &str| change.get_mut(key).map(Value::take);
    let description = given("description").map(|value| text(&value));
    let change = FilesetChange {
        description: description.or(emptied.then(String::new)),
        purpose: given("purpose").map(|value| text(&value)),
        project: None,
        metadata: given("metadata"),
        custom_fields: given("custom_fields"),
    };
    let changed = api.records.filesets().update(&workspace, &name, change).await;
    Ok(Json(show(&or_gone(changed, || missing(&workspace, &name))?)))
}

/// Removes one. Jobs that pinned it keep what they pinned.
pub(super) async fn delete(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
) -> Answer<Json<Value>> {
    writable(&api, &caller, &workspace, &name).await?;
    let deleted = api.records.filesets().delete(&workspace, &name).await;
    Ok(Json(show(&or_not_found(deleted, || missing(&workspace, &name))?)))
}

/// Filesets of ours follow nothing that could be refreshed.
pub(super) async fn refresh(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    find(&api, &workspace, &name).await?;
    Err(ApiError::conflict(format!(
        "Fileset '{workspace}/{name}' does not track a revision that can be refreshed"
    )))
}

/// A fileset that somebody made, or that of a job.
pub(super) enum Found {
    Stored(Box<Fileset>),
    OfJob(Box<Job>),
}

/// Finds one.
pub(super) async fn find(api: &Api, workspace: &str, name: &str) -> Answer<Found> {
    match api.records.filesets().get(workspace, name).await {
        Ok(fileset) => return Ok(Found::Stored(Box::new(fileset))),
        Err(records::Error::NotFound | records::Error::Text(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let job = job_files::job(api, workspace, name).await?;
    let job = job.ok_or_else(|| ApiError::not_found(missing(workspace, name)))?;
    Ok(Found::OfJob(Box::new(job)))
}

/// Finds one that the caller may write.
pub(super) async fn writable(
    api: &Api,
    caller: &Caller,
    workspace: &str,
    name: &str,
) -> Answer<Fileset> {
    ethos::may_write(caller, workspace, name)?;
    match find(api, workspace, name).await? {
        Found::Stored(fileset) => Ok(*fileset),
        Found::OfJob(job) => Err(ApiError::forbidden(format!(
            "Fileset '{workspace}/{name}' holds the results of job '{}', which only the platform \
             writes",
            job.name
        ))),
    }
}

fn missing(workspace: &str, name: &str) -> String {
    format!("Fileset '{name}' not found in workspace '{workspace}'")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn show(fileset: &Fileset) -> Value {
    json!({
        "id": fileset.id,
        "name": fileset.name,
        "workspace": fileset.workspace,
        "description": fileset.description,
        "purpose": fileset.purpose,
        "storage": storage(&fileset.workspace, &fileset.name),
        "metadata": fileset.metadata,
        "custom_fields": fileset.custom_fields,
        "project": fileset.project,
        "created_at": time(fileset.created_at),
        "updated_at": time(fileset.updated_at),
    })
}

/// Where the bytes really are is nobody's business.
pub(super) fn storage(workspace: &str, name: &str) -> Value {
    json!({
        "type": "local",
        "path": format!("{workspace}/{name}"),
        "read_chunk_size": 1_048_576,
        "write_buffer_size": 16_777_216,
    })
}
