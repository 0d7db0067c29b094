//! Registered agents, and the post-run actions that they may name.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_conflict, or_not_found};
use super::filter;
use super::list::{Pairs, Rules, TooSmall};
use super::{time, workspaces};
use crate::catalog::request::NAME;
use crate::catalog::shape::{self, Absent, Shape, Table, Unknown, field, no_rule, table};
use crate::catalog::{agent_config, check_schema};
use crate::records::filter::AGENTS;
use crate::records::{Agent, NewAgent};

pub(super) const NEW: Table = Table {
    fields: &[
        field("name", NAME, Absent::Refused),
        field("description", Shape::Text, Absent::Text("")),
        field("config", Shape::Dict, Absent::Refused),
        field("config_format", Shape::Text, Absent::Text(agent_config::WORKFLOW_FORMAT)),
        field("context_schema", Shape::Json, Absent::Null),
        field("default_input", Shape::Text, Absent::Null),
        field("post_run_actions", Shape::List(&Shape::Text), Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

/// The same three, as agent.yaml has them.
const REGISTRATION: Table = table(&[
    field("context_schema", Shape::Json, Absent::Null),
    field("default_input", Shape::Text, Absent::Null),
    field("post_run_actions", Shape::List(&Shape::Text), Absent::Null),
]);

const RULES: Rules = Rules {
    page_size: 20,
    max_page_size: 100,
    too_small: TooSmall::AtLeast,
    sort: &[],
    pages_of_nothing: 0,
};

/// Registers one.
pub(super) async fn create(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    body: Body,
) -> Answer<(StatusCode, Json<Value>)> {
    let new = read(&workspace, body.read(&NEW)?)?;
    if let Some(schema) = new.context_schema.clone() {
        check_schema(schema).await?;
    }
    let installed = &api.catalog.settings().actions;
    for kind in &new.post_run_actions {
        installed.get(kind).map_err(|refused| ApiError::bad_request(refused.to_string()))?;
    }
    workspaces::check(&api, &workspace).await?;
    let name = new.name.clone();
    let made = or_conflict(api.records.agents().insert(new).await, || {
        format!("Agent '{name}' already exists in workspace '{workspace}'.")
    })?;
    Ok((StatusCode::CREATED, Json(show(&made))))
}

/// Lists them.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    query: Pairs,
) -> Answer<Json<Value>> {
    let asked = query.asked(&RULES)?;
    let wanted = filter::plain(&AGENTS).read(&query)?;
    let workspace = workspaces::listed(&api, &workspace).await?;
    let select = asked.select(wanted.condition.clone());
    let listed = api.records.agents().list(workspace, &select).await?;
    let mut envelope = asked.envelope(listed, |agent| show(&agent));
    envelope.insert("filter".to_owned(), wanted.echo_of_agents());
    Ok(Json(Value::Object(envelope)))
}

/// One.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let found = api.records.agents().get(&workspace, &name).await;
    Ok(Json(show(&or_not_found(found, || missing(&workspace, &name))?)))
}

/// Forgets one. Its jobs keep their snapshots, its files their fileset.
pub(super) async fn delete(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let deleted = api.records.agents().delete(&workspace, &name).await;
    or_not_found(deleted, || missing(&workspace, &name))?;
    Ok(StatusCode::NO_CONTENT)
}

/// The installed post-run actions.
pub(super) async fn post_run_actions(State(api): State<Api>) -> Json<Value> {
    let actions = api.catalog.settings().actions.installed().map(|action| {
        json!({
            "kind": action.kind,
            "title": action.title,
            "description": action.description,
            "config_schema": action.config_schema(),
        })
    });
    Json(json!({"data": actions.collect::<Vec<_>>()}))
}

fn missing(workspace: &str, name: &str) -> String {
    format!("Agent '{name}' not found in workspace '{workspace}'.")
}

/// Makes a record of a body that is well formed.
fn read(workspace: &str, mut body: Value) -> Answer<NewAgent> {
    let mut config = body["config"].take();
    let format = text(&body, "config_format");
    match format.as_str() {
        agent_config::FORMAT => {
            lift_registration(&mut config, &mut body)?;
            let normalised = agent_config::normalise(&config)
                .map_err(|text| ApiError::bad_request(format!("Invalid agent config: {text}")))?;
            config = Value::Object(normalised);
        }
        agent_config::WORKFLOW_FORMAT => {}
        other => {
            return Err(ApiError::bad_request(format!("Unsupported config_format '{other}'.")));
        }
    }
    let actions: Vec<String> = body["post_run_actions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|kind| kind.as_str().map(str::to_owned))
        .collect();
    let schema = Some(body["context_schema"].take()).filter(|schema| !schema.is_null());
    Ok(NewAgent {
        name: text(&body, "name"),
        workspace: workspace.to_owned(),
        project: None,
        description: text(&body, "description"),
        config,
        config_format: format,
        context_schema: schema,
        default_input: body["default_input"].as_str().map(str::to_owned),
        post_run_actions: actions,
    })
}

/// Takes what agent.yaml keeps in the configuration to where it belongs. What stands there
/// already wins.
fn lift_registration(config: &mut Value, body: &mut Value) -> Answer<()> {
    let config = config.as_object_mut();
    let Some(lifted) = config.and_then(|config| config.shift_remove("helix_registration")) else {
        return Ok(());
    };
    let loc = ["body".into(), "config".into(), "helix_registration".into()];
    let lifted = shape::read(&Shape::Object(&REGISTRATION), &lifted, &loc);
    let lifted = lifted.map_err(ApiError::invalid)?;
    for (key, value) in lifted.as_object().into_iter().flatten() {
        if body[key].is_null() {
            body[key] = value.clone();
        }
    }
    Ok(())
}

fn text(body: &Value, key: &str) -> String {
    body[key].as_str().unwrap_or_default().to_owned()
}

fn show(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "workspace": agent.workspace,
        "project": agent.project,
        "description": agent.description,
        "config": agent.config,
        "config_format": agent.config_format,
        "context_schema": agent.context_schema,
        "default_input": agent.default_input,
        "post_run_actions": agent.post_run_actions,
        "id": agent.id,
        "entity_id": agent.id,
        "parent": null,
        "created_at": time(agent.created_at),
        "created_by": "service:platform",
        "updated_at": time(agent.updated_at),
        "updated_by": "service:platform",
        "db_version": 1,
    })
}
