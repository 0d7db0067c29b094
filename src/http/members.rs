//! Members of workspaces. Nobody has a role while there is no authentication: the list is empty,
//! and nothing can be added to it.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::body::Body;
use super::error::{Answer, ApiError};
use super::{Api, workspaces};
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};

pub(super) const NEW: Table = Table {
    fields: &[
        field("principal", Shape::Text, Absent::Refused),
        field("roles", Shape::List(&Shape::Text), Absent::List),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

pub(super) const CHANGE: Table = Table {
    fields: &[field("roles", Shape::List(&Shape::Text), Absent::Refused)],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

/// Lists them: none.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
) -> Answer<Json<Value>> {
    workspaces::find(&api, &workspace).await?;
    Ok(Json(json!({"data": []})))
}

/// Refuses to add one.
pub(super) async fn add(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    body: Body,
) -> Answer<()> {
    body.read(&NEW)?;
    refuse(&api, &workspace).await
}

/// Refuses to change one.
pub(super) async fn change(
    State(api): State<Api>,
    Path((workspace, _)): Path<(String, String)>,
    body: Body,
) -> Answer<()> {
    body.read(&CHANGE)?;
    refuse(&api, &workspace).await
}

/// Refuses to remove one.
pub(super) async fn remove(
    State(api): State<Api>,
    Path((workspace, _)): Path<(String, String)>,
) -> Answer<()> {
    refuse(&api, &workspace).await
}

async fn refuse(api: &Api, workspace: &str) -> Answer<()> {
    workspaces::find(api, workspace).await?;
    Err(ApiError::forbidden(format!(
        "Members of workspace '{workspace}' cannot be changed: authentication is off, and everyone \
         may do everything"
    )))
}
