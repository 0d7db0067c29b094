//! Workspaces.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_conflict, or_gone, or_not_found};
use super::filter;
use super::list::{Pairs, Rules, TooSmall, scope};
use super::time;
use crate::auth::{Caller, Role};
use crate::catalog::request::NAME;
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};
use crate::records::filter::{Condition, WORKSPACES};
use crate::records::{self, Contents, Workspace};

/// Made at the first start, and there for good.
const SEEDED: [&str; 2] = ["default", "system"];

pub(super) const NEW: Table = Table {
    fields: &[
        field("name", NAME, Absent::Refused),
        field("description", Shape::Text, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

pub(super) const CHANGE: Table = Table {
    fields: &[field("description", Shape::Text, Absent::Null)],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

const RULES: Rules = Rules {
    page_size: 100,
    max_page_size: 1000,
    too_small: TooSmall::AtLeast,
    sort: &["created_at", "updated_at", "name"],
    pages_of_nothing: 0,
};

/// Refuses to write into a workspace that does not exist.
pub(super) async fn check(api: &Api, workspace: &str) -> Answer<()> {
    if api.records.workspaces().exists(workspace).await? {
        return Ok(());
    }
    Err(ApiError::unprocessable(format!(
        "Workspace '{workspace}' does not exist. Please create the workspace first."
    )))
}

/// The workspace that a list is about, which must exist; none when it is about all of them.
pub(super) async fn listed<'w>(api: &Api, workspace: &'w str) -> Answer<Option<&'w str>> {
    let scope = scope(workspace);
    if let Some(workspace) = scope
        && !api.records.workspaces().exists(workspace).await?
    {
        return Err(ApiError::no_workspace(workspace));
    }
    Ok(scope)
}

/// Makes one.
pub(super) async fn create(
    State(api): State<Api>,
    body: Body,
) -> Answer<(StatusCode, Json<Value>)> {
    let new = body.read(&NEW)?;
    let name = new["name"].as_str().unwrap_or_default();
    if name.starts_with("sample-") {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "Workspace names beginning with 'sample-' are reserved for the sample flow",
        ));
    }
    let made = api.records.workspaces().insert(name, new["description"].as_str()).await;
    let made = or_conflict(made, || format!("Workspace '{name}' already exists"))?;
    Ok((StatusCode::CREATED, Json(show(&made))))
}

/// Lists those that the caller has a role in.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    query: Pairs,
) -> Answer<Json<Value>> {
    let asked = query.asked(&RULES)?;
    let wanted = filter::plain(&WORKSPACES).read(&query)?;
    let condition = match caller.workspaces(Role::Viewer) {
        None => wanted.condition,
        Some(visible) => {
            let visible = visible.iter().map(String::as_str);
            Some(Condition::one_of(&records::filter::NAME, visible).and(wanted.condition))
        }
    };
    let listed = api.records.workspaces().list(&asked.select(condition)).await?;
    let mut envelope = asked.envelope(listed, |workspace| show(&workspace));
    envelope.insert("filter".to_owned(), wanted.echo.unwrap_or_default());
    Ok(Json(Value::Object(envelope)))
}

/// One.
pub(super) async fn get(State(api): State<Api>, Path(name): Path<String>) -> Answer<Json<Value>> {
    Ok(Json(show(&find(&api, &name).await?)))
}

/// Finds one.
pub(super) async fn find(api: &Api, name: &str) -> Answer<Workspace> {
    or_not_found(api.records.workspaces().get(name).await, || missing(name))
}

/// Replaces its description.
pub(super) async fn update(
    State(api): State<Api>,
    Path(name): Path<String>,
    body: Body,
) -> Answer<Json<Value>> {
    let change = body.read(&CHANGE)?;
    let changed = api.records.workspaces().update(&name, change["description"].as_str()).await;
    Ok(Json(show(&or_gone(changed, || missing(&name))?)))
}

/// Removes one that holds nothing, at once.
pub(super) async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    if SEEDED.contains(&name.as_str()) {
        return Err(ApiError::conflict(format!("Workspace '{name}' cannot be deleted")));
    }
    let held = or_not_found(api.records.workspaces().delete(&name).await, || missing(&name))?;
    if !held.is_empty() {
        return Err(ApiError::conflict(format!(
            "Workspace '{name}' is not empty: it holds {}. Delete them first.",
            counted(&held)
        )));
    }
    Ok(Json(json!({"message": "Workspace marked for deletion", "id": name})))
}

/// The reference removes workspaces in the background and says here how far it is. Ours are gone
/// when their removal is answered, so there is never one to follow.
pub(super) async fn deletion(Path(name): Path<String>) -> ApiError {
    ApiError::not_found(missing(&name))
}

/// `2 jobs, 1 secret`.
fn counted(held: &Contents) -> String {
    let count = |(what, count): &(&str, u64)| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    held.iter().map(count).collect::<Vec<_>>().join(", ")
}

fn missing(name: &str) -> String {
    format!("Workspace '{name}' not found")
}

fn show(workspace: &Workspace) -> Value {
    let by = if SEEDED.contains(&workspace.name.as_str()) { Value::Null } else { json!("") };
    json!({
        "id": workspace.id,
        "name": workspace.name,
        "description": workspace.description,
        "created_at": time(workspace.created_at),
        "created_by": by,
        "updated_at": time(workspace.updated_at),
        "updated_by": by,
    })
}
