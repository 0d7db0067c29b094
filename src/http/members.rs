//! Members of workspaces: the tokens that have a role there. They are made on the platform's
//! machine and nowhere else, so nothing can be changed here. Without authentication there is no
//! member.

use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::body::Body;
use super::error::{Answer, ApiError};
use super::{Api, workspaces};
use crate::auth::role_in;
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

/// Lists them.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
) -> Answer<Json<Value>> {
    workspaces::find(&api, &workspace).await?;
    if !api.gate.is_shut() {
        return Ok(Json(json!({"data": []})));
    }
    let (tokens, now) = (api.records.tokens().all().await?, Timestamp::now());
    let members = tokens.iter().filter(|token| token.is_valid(now)).filter_map(|token| {
        let role = role_in(&token.roles, &workspace)?;
        Some(json!({"principal": token.name, "roles": [role.as_str()]}))
    });
    Ok(Json(json!({"data": members.collect::<Vec<_>>()})))
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
    let reason = match api.gate.is_shut() {
        false => "authentication is off, and everyone may do everything".to_owned(),
        true => format!(
            "they are tokens, which are made on the platform's machine by `errand tokens create \
             --workspace {workspace} --role ROLE` and taken away by `errand tokens revoke NAME`"
        ),
    };
    let detail = format!("Members of workspace '{workspace}' cannot be changed: {reason}");
    Err(ApiError::forbidden(detail))
}
