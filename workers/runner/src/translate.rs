//! From an agent definition (`nemo-agents-spec-v1`) to a Fabric configuration, both as JSON.
//!
//! Nothing is started or read here. The texts of errors about the definition are the reference's,
//! because people search for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use errand_runner::adapters::{self, KINDS, QUALIFIED, SCRIPT};
use errand_runner::{Failure, Launch};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{agent_dirs, limit};

mod relay;

const MODEL_FIELDS: [&str; 8] = [
    "provider",
    "model",
    "api_key_env",
    "base_url",
    "temperature",
    "top_p",
    "max_tokens",
    "settings",
];

/// What the run adds to the definition.
pub(crate) struct Surroundings<'a> {
    pub(crate) base: &'a Path,
    pub(crate) adapter_dirs: Vec<PathBuf>,
    /// Names of secret variables; their values are in the host's environment.
    pub(crate) secrets: &'a [&'a str],
    /// What agents of other adapters than ours find in `NEMO_JOB_DEADLINE`.
    pub(crate) deadline: Timestamp,
}

/// Why a definition cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "Unsupported harness kind '{kind}'. Supported harness kinds: {}; or a fully-qualified \
         Fabric adapter id starting with '{QUALIFIED}'.",
        Vec::from_iter(KINDS.iter().map(|(kind, _)| *kind)).join(", ")
    )]
    HarnessKind { kind: String },
    #[error("default_harness must reference one of harnesses: {0}")]
    NoHarness(String),
    #[error("Configure workflow or default_harness with harnesses")]
    Nothing,
    #[error("Harness '{0}' does not define a model and no models.default is configured.")]
    NoModel(String),
    #[error("Workflow requires models.default to be configured.")]
    NoWorkflowModel,
    #[error(
        "Model extensions may not override declared model fields: {0}. Set these as top-level \
         model fields instead of under extensions."
    )]
    ModelExtensions(String),
    #[error("prompts are not supported by Fabric; use instructions.system instead.")]
    Prompts,
    #[error("agents.execute jobs only support local Fabric environments.")]
    Provider,
    #[error("Unsupported telemetry provider '{0}'. Only 'relay' is supported.")]
    Telemetry(String),
    #[error(
        "harness '{0}' needs settings.command: a list of strings, the program and its arguments"
    )]
    Command(String),
    #[error(
        "harness '{harness}' has the unknown setting '{setting}'; the script harness knows \
         command and allow_empty"
    )]
    ScriptSetting { harness: String, setting: String },
    #[error(transparent)]
    Dirs(#[from] agent_dirs::Error),
}

impl Error {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::HarnessKind { .. } => Failure::AdapterMissing,
            _ => Failure::AgentFailed,
        }
    }
}

/// Whether the agent runs in our own adapter.
pub(crate) fn is_script(agent: &Value) -> bool {
    let selected = agent["default_harness"].as_str().unwrap_or_default();
    agent["harnesses"][selected]["kind"] == "script"
}

/// Translates.
pub(crate) fn fabric_config(launch: &Launch, around: &Surroundings<'_>) -> Result<Value, Error> {
    let agent = &launch.agent;
    if agent["prompts"].as_object().is_some_and(|it| !it.is_empty()) {
        return Err(Error::Prompts);
    }
    let mut config = json!({
        "schema_version": "fabric.agent/v1alpha1",
        "metadata": metadata(agent),
        "discovery": {"local_paths": around.adapter_dirs},
        "runtime": runtime(launch, around)?,
        "environment": environment(launch, around)?,
        "models": {},
        // Evidence for humans that no reader of ours looks at; it would double the result.
        "provenance": {"enabled": false},
        "system_stats": null,
    });
    match &agent["workflow"] {
        Value::Null => add_harness(&mut config, agent)?,
        workflow => {
            config["workflow"] = without_nulls(workflow);
            config["models"] = models(agent, &Value::Null)?;
            if config["models"].get("default").is_none() {
                return Err(Error::NoWorkflowModel);
            }
        }
    }
    if !agent["instructions"]["system"].is_null() {
        config["instructions"] = json!({"system": without_nulls(&agent["instructions"]["system"])});
    }
    if let Some(paths) = filled_array(&agent["skills"]["paths"]) {
        config["skills"] = json!({"paths": paths});
    }
    if let Some(blocked) = filled_array(&agent["tools"]["blocked"]) {
        config["tools"] = json!({"blocked": blocked});
    }
    if let Some(servers) = agent["mcp"]["servers"].as_object().filter(|it| !it.is_empty()) {
        config["mcp"] = json!({"servers": mcp_servers(servers)});
    }
    if agent["telemetry"]["enabled"] == true && !is_script(agent) {
        relay::add(&mut config, agent)?;
    }
    Ok(config)
}

fn metadata(agent: &Value) -> Value {
    let mut metadata = json!({"name": agent["name"].as_str().unwrap_or("agent")});
    if let Some(text) = agent["description"].as_str().filter(|text| !text.is_empty()) {
        metadata["description"] = text.into();
    }
    metadata
}

fn runtime(launch: &Launch, around: &Surroundings<'_>) -> Result<Value, Error> {
    let given = &launch.agent["runtime"];
    let mut runtime = json!({"timeout_seconds": limit::for_fabric(launch)});
    if let Some(artifacts) = given["artifacts"].as_str() {
        runtime["artifacts"] = json!(agent_dirs::inside(around.base, artifacts, "artifacts")?);
    }
    if !given["max_turns"].is_null() {
        runtime["max_turns"] = given["max_turns"].clone();
    }
    Ok(runtime)
}

/// Plain variables ride in the plan; secrets and the platform's are passed by name, which keeps
/// them out of every file that Fabric writes.
fn environment(launch: &Launch, around: &Surroundings<'_>) -> Result<Value, Error> {
    let given = &launch.agent["environment"];
    if given["provider"].as_str().is_some_and(|it| it != "local") {
        return Err(Error::Provider);
    }
    let dirs = agent_dirs::AgentDirs::of(around.base, &launch.agent)?;
    let mut env = object(&given["env"]);
    env.retain(|name, _| {
        let reserved = name.starts_with("NEMO_") || name.starts_with("NHX_");
        let taken =
            around.secrets.contains(&name.as_str()) || (reserved && launch.env.contains_key(name));
        !taken
    });
    if !is_script(&launch.agent) {
        env.insert("NEMO_JOB_DEADLINE".into(), around.deadline.to_string().into());
    }
    let names: BTreeSet<&str> = launch
        .env
        .keys()
        .map(String::as_str)
        .chain(around.secrets.iter().copied())
        .filter(|name| is_identifier(name) && !env.contains_key(*name))
        .collect();
    let mut environment = json!({
        "provider": "local",
        "workspace": dirs.workspace,
        "artifacts": dirs.artifacts,
        "env": env,
        "env_names": names,
    });
    for optional in ["settings", "control_location", "ownership", "connection", "metadata"] {
        if !given[optional].is_null() {
            environment[optional] = given[optional].clone();
        }
    }
    Ok(environment)
}

fn add_harness(config: &mut Value, agent: &Value) -> Result<(), Error> {
    let harnesses = object(&agent["harnesses"]);
    let Some(name) = agent["default_harness"].as_str() else {
        return Err(Error::Nothing);
    };
    let Some(harness) = harnesses.get(name) else {
        let mut names: Vec<String> = harnesses.keys().cloned().collect();
        names.sort();
        return Err(Error::NoHarness(names.join(", ")));
    };
    let adapter_id = adapter_id(harness["kind"].as_str().unwrap_or_default())?;
    let mut settings = object(&harness["settings"]);
    if adapter_id == SCRIPT {
        settings = script_settings(name, settings)?;
    }
    config["models"] = models(agent, &harness["model"])?;
    if config["models"].get("default").is_none() && adapter_id != SCRIPT {
        return Err(Error::NoModel(name.into()));
    }
    config["harness"] = json!({
        "adapter_id": adapter_id,
        "resolution": "preinstalled",
        "settings": settings,
    });
    Ok(())
}

fn adapter_id(kind: &str) -> Result<&str, Error> {
    adapters::of_kind(kind).ok_or_else(|| Error::HarnessKind { kind: kind.into() })
}

/// Fabric lets a setting called `command` replace the adapter's own executable, so the script's
/// travels under another name.
fn script_settings(
    harness: &str,
    mut settings: Map<String, Value>,
) -> Result<Map<String, Value>, Error> {
    let command = settings.remove("command").unwrap_or_default();
    let is_command = filled_array(&command).is_some_and(|it| it.iter().all(Value::is_string));
    if !is_command {
        return Err(Error::Command(harness.into()));
    }
    if let Some(unknown) = settings.keys().find(|key| *key != "allow_empty") {
        return Err(Error::ScriptSetting { harness: harness.into(), setting: unknown.clone() });
    }
    settings.insert("argv".into(), command);
    Ok(settings)
}

/// All models, and the selected one once more as `default`.
fn models(agent: &Value, own: &Value) -> Result<Value, Error> {
    let mut models = Map::new();
    for (key, model) in object(&agent["models"]) {
        models.insert(key, flat_model(&model)?);
    }
    if !own.is_null() {
        models.insert("default".into(), flat_model(own)?);
    }
    Ok(Value::Object(models))
}

/// A model with its extensions beside its own fields.
fn flat_model(model: &Value) -> Result<Value, Error> {
    let mut flat = object(&without_nulls(model));
    let extensions = object(&flat.remove("extensions").unwrap_or_default());
    let clashing = Vec::from_iter(
        extensions.keys().map(String::as_str).filter(|key| MODEL_FIELDS.contains(key)),
    );
    if !clashing.is_empty() {
        return Err(Error::ModelExtensions(clashing.join(", ")));
    }
    flat.extend(extensions);
    Ok(Value::Object(flat))
}

fn mcp_servers(servers: &Map<String, Value>) -> Value {
    let server = |given: &Value| {
        let mut server = object(&without_nulls(given));
        server.entry("exposure").or_insert_with(|| "harness_native".into());
        Value::Object(server)
    };
    Value::Object(servers.iter().map(|(name, given)| (name.clone(), server(given))).collect())
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn filled_array(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|items| !items.is_empty())
}

/// Fabric takes an absent field for its default and a null for a mistake.
fn without_nulls(value: &Value) -> Value {
    let mut fields = object(value);
    fields.retain(|_, field| !field.is_null());
    Value::Object(fields)
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests;
