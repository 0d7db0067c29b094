//! Secrets: names and descriptions. A value comes in and does not come out again, except where
//! the configuration says so.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_conflict, or_gone, or_not_found};
use super::list::{Pairs, Rules, TooSmall, without_nulls};
use super::{time, workspaces};
use crate::auth::Caller;
use crate::catalog::MAX_VALUE_BYTES;
use crate::catalog::request::NAME;
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};
use crate::records::{self, SecretRow};
use crate::secrets::{SecretStoreError, SecretValue};

pub(super) const NEW: Table = Table {
    fields: &[
        field("name", NAME, Absent::Refused),
        field("value", Shape::Checked(fits_a_variable), Absent::Refused),
        field("description", Shape::Text, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

pub(super) const CHANGE: Table = Table {
    fields: &[
        field("value", Shape::Checked(fits_a_variable), Absent::Null),
        field("description", Shape::Text, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

const RULES: Rules = Rules {
    page_size: 10,
    max_page_size: 1000,
    too_small: TooSmall::GreaterThan,
    sort: &[],
    pages_of_nothing: 0,
};

/// Keeps a new one.
pub(super) async fn create(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    body: Answer<Body>,
) -> Answer<(StatusCode, Json<Value>)> {
    let mut new = read(body, &NEW)?;
    workspaces::check(&api, &workspace).await?;
    let name = new["name"].as_str().unwrap_or_default().to_owned();
    let value = custody(new["value"].take()).unwrap_or_else(|| SecretValue::new(String::new()));
    let description = new["description"].as_str();
    let made = api.secrets.create(&workspace, &name, description, &value).await;
    let made =
        or_conflict(in_records(made)?, || format!("Secret '{workspace}/{name}' already exists"))?;
    Ok((StatusCode::CREATED, Json(show(&made))))
}

/// Lists them, the newest first.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    query: Pairs,
) -> Answer<Json<Value>> {
    // As in the reference, any order is taken and none is followed.
    let asked = query.without("sort").asked(&RULES)?;
    let workspace = workspaces::listed(&api, &workspace).await?;
    let listed = api.records.secrets().list(workspace, &asked.select(None)).await?;
    let mut envelope = asked.envelope(listed, |secret| without_nulls(show(&secret)));
    envelope.shift_remove("sort");
    Ok(Json(Value::Object(envelope)))
}

/// One, without its value.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let found = api.records.secrets().get(&workspace, &name).await;
    Ok(Json(show(&or_not_found(found, || missing(&workspace, &name))?)))
}

/// Replaces what is given.
pub(super) async fn update(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    body: Answer<Body>,
) -> Answer<Json<Value>> {
    let mut change = read(body, &CHANGE)?;
    let value = custody(change["value"].take());
    let description = change["description"].as_str();
    let changed = api.secrets.update(&workspace, &name, description, value.as_ref()).await;
    let changed = or_gone(in_records(changed)?, || missing(&workspace, &name))?;
    Ok(Json(show(&changed)))
}

/// Removes one.
pub(super) async fn delete(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let deleted = api.records.secrets().delete(&workspace, &name).await;
    or_not_found(deleted, || missing(&workspace, &name))?;
    Ok(StatusCode::NO_CONTENT)
}

/// The value, where the configuration allows that. That somebody asked is logged, whatever the
/// answer, and who did where callers are known.
pub(super) async fn access(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
) -> Answer<Json<Value>> {
    let found = api.records.secrets().get(&workspace, &name).await;
    or_not_found(found, || missing(&workspace, &name))?;
    tracing::warn!(
        secret.workspace = workspace,
        secret.name = name,
        secret.given = api.secret_access,
        "{caller} asked for a secret's value"
    );
    if !api.secret_access {
        return Err(ApiError::forbidden(format!(
            "Access to the value of secret '{workspace}/{name}' is turned off"
        )));
    }
    let value = in_records(api.secrets.value(&workspace, &name).await)?;
    let value = or_not_found(value, || missing(&workspace, &name))?;
    Ok(Json(json!({"name": name, "workspace": workspace, "value": value.reveal()})))
}

fn missing(workspace: &str, name: &str) -> String {
    format!("Secret {workspace}/{name} not found")
}

/// A value becomes a variable of the agent's environment, or the agent cannot be started.
fn fits_a_variable(value: &str) -> Result<String, String> {
    if value.is_empty() {
        return Err("Secret value cannot be empty".to_owned());
    }
    if value.contains('\0') {
        return Err("Secret value cannot contain a NUL character".to_owned());
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(format!(
            "Secret value has {} bytes; an environment variable holds at most {MAX_VALUE_BYTES}",
            value.len()
        ));
    }
    Ok(value.to_owned())
}

fn custody(value: Value) -> Option<SecretValue> {
    match value {
        Value::String(value) => Some(SecretValue::new(value)),
        _ => None,
    }
}

/// A refusal must not quote the value back, not even that of a body that is no JSON.
fn read(body: Answer<Body>, table: &'static Table) -> Answer<Value> {
    body.and_then(|body| body.read(table)).map_err(ApiError::without_inputs)
}

/// Sealing fails for reasons that are ours; records fail for reasons that may be the caller's.
fn in_records<T>(done: Result<T, SecretStoreError>) -> Answer<records::Result<T>> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(SecretStoreError::Records(error)) => Ok(Err(error)),
        Err(error @ SecretStoreError::Seal { .. }) => Err(ApiError::internal(error)),
    }
}

fn show(secret: &SecretRow) -> Value {
    json!({
        "name": secret.name,
        "workspace": secret.workspace,
        "description": secret.description,
        "created_at": time(secret.created_at),
        "updated_at": time(secret.updated_at),
    })
}
