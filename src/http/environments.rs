//! Environments, environment specs and compute specs: three collections with the same verbs.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_conflict, or_not_found};
use super::filter;
use super::list::{Pairs, Rules, TooSmall};
use super::{time, workspaces};
use crate::catalog::{read_stored, show_stored};
use crate::records::filter::NAMED;
use crate::records::{Environment, EnvironmentKind, NewEnvironment};

const RULES: Rules = Rules {
    page_size: 20,
    max_page_size: 100,
    too_small: TooSmall::AtLeast,
    sort: &[],
    pages_of_nothing: 0,
};

/// Keeps a new one.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(kind): Extension<EnvironmentKind>,
    Path(workspace): Path<String>,
    body: Body,
) -> Answer<(StatusCode, Json<Value>)> {
    let (name, body) = read_stored(kind, &body.0).map_err(ApiError::invalid)?;
    workspaces::check(&api, &workspace).await?;
    let new = NewEnvironment { name: name.clone(), workspace: workspace.clone(), body };
    let made = or_conflict(api.records.environments(kind).insert(new).await, || {
        format!("{} '{name}' already exists in workspace '{workspace}'.", noun(kind))
    })?;
    Ok((StatusCode::CREATED, Json(show(kind, &made))))
}

/// Lists them.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(kind): Extension<EnvironmentKind>,
    Path(workspace): Path<String>,
    query: Pairs,
) -> Answer<Json<Value>> {
    let asked = query.asked(&RULES)?;
    let wanted = filter::plain(&NAMED).read(&query)?;
    let workspace = workspaces::listed(&api, &workspace).await?;
    let listed = api
        .records
        .environments(kind)
        .list(workspace, &asked.select(wanted.condition.clone()))
        .await?;
    let mut envelope = asked.envelope(listed, |found| show(kind, &found));
    envelope.insert("filter".to_owned(), wanted.echo_of_agents());
    Ok(Json(Value::Object(envelope)))
}

/// One.
pub(super) async fn get(
    State(api): State<Api>,
    Extension(kind): Extension<EnvironmentKind>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let found = api.records.environments(kind).get(&workspace, &name).await;
    Ok(Json(show(kind, &or_not_found(found, || missing(kind, &workspace, &name))?)))
}

/// Forgets one. Jobs keep their snapshots; what refers to it finds nothing any more.
pub(super) async fn delete(
    State(api): State<Api>,
    Extension(kind): Extension<EnvironmentKind>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let deleted = api.records.environments(kind).delete(&workspace, &name).await;
    or_not_found(deleted, || missing(kind, &workspace, &name))?;
    Ok(StatusCode::NO_CONTENT)
}

const fn noun(kind: EnvironmentKind) -> &'static str {
    match kind {
        EnvironmentKind::Environment => "Agent environment",
        EnvironmentKind::EnvironmentSpec => "Agent environment spec",
        EnvironmentKind::ComputeSpec => "Agent compute spec",
    }
}

fn missing(kind: EnvironmentKind, workspace: &str, name: &str) -> String {
    format!("{} '{name}' not found in workspace '{workspace}'.", noun(kind))
}

fn show(kind: EnvironmentKind, found: &Environment) -> Value {
    let mut shown = show_stored(kind, &found.body);
    let entity = json!({
        "name": found.name,
        "workspace": found.workspace,
        "project": null,
        "id": found.id,
        "created_at": time(found.created_at),
        "created_by": "service:platform",
        "updated_at": time(found.updated_at),
        "updated_by": "service:platform",
        "entity_id": found.id,
        "parent": null,
        "db_version": 1,
    });
    shown.extend(entity.as_object().cloned().unwrap_or_default());
    Value::Object(shown)
}
