//! The agent of a job: looked up or inline, its configuration resolved and normalised.

use serde_json::{Value, json};
use streams::snapshot::Source;

use super::refusal::{Refusal, may_refer};
use super::request::Agent;
use super::{CatalogService, agent_config, refs, request};
use crate::auth::{Caller, Role};
use crate::records;

/// An agent that a job can run.
#[derive(Debug)]
pub(super) struct Resolved {
    pub name: String,
    pub workspace: String,
    /// Normalised; the environment is not merged yet.
    pub config: Value,
    /// `workspace/name`; absent for an inline agent.
    pub agent_ref: Option<String>,
    pub default_input: Option<String>,
    pub context_schema: Option<Value>,
    pub post_run_actions: Vec<String>,
    pub ethos: Option<Source>,
}

impl CatalogService {
    /// Finds the agent of a request, or takes it from there.
    pub(super) async fn resolve_agent(
        &self,
        caller: &Caller,
        workspace: &str,
        agent: &Agent,
    ) -> Result<Resolved, Refusal> {
        match agent {
            Agent::Ref(reference) => self.stored(caller, workspace, reference).await,
            Agent::Inline { config } => inline(workspace, config),
        }
    }

    async fn stored(
        &self,
        caller: &Caller,
        workspace: &str,
        reference: &str,
    ) -> Result<Resolved, Refusal> {
        let (workspace, name) = refs::in_workspace(reference, workspace);
        may_refer(caller, Role::Viewer, workspace, || format!("Agent '{reference}'"))?;
        let agent = match self.records.agents().get(workspace, name).await {
            Ok(agent) => agent,
            Err(records::Error::NotFound | records::Error::Text(_)) => {
                return Err(Refusal::Transform(format!("Agent '{reference}' not found.")));
            }
            Err(error) => return Err(error.into()),
        };
        request::runnable(&agent.config_format).map_err(Refusal::Transform)?;
        let config = normalised(&agent.config, &agent.name)
            .map_err(|text| Refusal::Transform(format!("Invalid agent config: {text}")))?;
        Ok(Resolved {
            config,
            agent_ref: Some(format!("{}/{}", agent.workspace, agent.name)),
            default_input: agent.default_input,
            context_schema: agent.context_schema,
            post_run_actions: agent.post_run_actions,
            ethos: self.pin_ethos(&agent.workspace, &agent.name).await?,
            name: agent.name,
            workspace: agent.workspace,
        })
    }
}

fn inline(workspace: &str, config: &Value) -> Result<Resolved, Refusal> {
    let name = config["name"].as_str().unwrap_or_default().to_owned();
    let config = normalised(config, &name)
        .map_err(|text| Refusal::Transform(format!("Inline agent config is invalid: {text}")))?;
    Ok(Resolved {
        name,
        workspace: workspace.to_owned(),
        config,
        agent_ref: None,
        default_input: None,
        context_schema: None,
        post_run_actions: Vec::new(),
        ethos: None,
    })
}

/// The configuration as a job runs it: models bound, defaults filled in, traces named.
fn normalised(config: &Value, name: &str) -> Result<Value, String> {
    let mut config = config.clone();
    bind_models(&mut config);
    let mut config = Value::Object(agent_config::normalise(&config)?);
    if config["telemetry"].get("agent_name").is_none() {
        config["telemetry"]["agent_name"] = json!(name);
    }
    Ok(config)
}

fn bind_models(config: &mut Value) {
    values(config, "models").for_each(bind_model);
    values(config, "harnesses").filter_map(|harness| harness.get_mut("model")).for_each(bind_model);
}

/// The values of an object in the configuration; none when it is no object.
fn values<'c>(config: &'c mut Value, key: &str) -> impl Iterator<Item = &'c mut Value> {
    let object = config.get_mut(key).and_then(Value::as_object_mut);
    object.into_iter().flat_map(|object| object.values_mut())
}

/// A model's address may stand among its settings, where older configurations have it.
fn bind_model(model: &mut Value) {
    let Some(fields) = model.as_object_mut() else { return };
    if fields.get("base_url").is_some_and(|url| !url.is_null()) {
        return;
    }
    let Some(settings) = fields.get_mut("settings").and_then(Value::as_object_mut) else { return };
    if settings.get("base_url").is_some_and(Value::is_string)
        && let Some(url) = settings.shift_remove("base_url")
    {
        fields.insert("base_url".to_owned(), url);
    }
}
