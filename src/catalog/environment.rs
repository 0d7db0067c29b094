//! Environments: what an inline one may hold, how it merges into an agent's configuration, and
//! what its secrets and its compute spec may ask for.

mod compute;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::refs;
use super::shape::{Absent, Shape, Table, field, table};

pub(crate) use compute::check as check_compute;

/// An environment, inline in a request: each part a reference, inline, or absent.
pub(crate) const ENVIRONMENT: Table = table(&[
    field("name", Shape::Text, Absent::Dropped),
    field("description", Shape::Text, Absent::Text("")),
    field("environment_spec", Shape::TextOr { text: &Shape::Text, object: &SPEC }, Absent::Null),
    field("compute_spec", Shape::TextOr { text: &Shape::Text, object: &COMPUTE }, Absent::Null),
]);

/// Absent fields stay absent: only what is given overrides the agent's configuration.
const SPEC: Table = table(&[
    field("name", Shape::Text, Absent::Dropped),
    field("description", Shape::Text, Absent::Text("")),
    field("env", Shape::Map(&Shape::Text), Absent::Object),
    field("secrets", Shape::Map(&Shape::Text), Absent::Object),
    field("model_provider_override", Shape::Object(&MODEL_PROVIDER), Absent::Dropped),
    field("provider", Shape::Text, Absent::Dropped),
    field("workspace_path", Shape::Checked(inside), Absent::Dropped),
    field("artifacts_path", Shape::Checked(inside), Absent::Dropped),
    field("control_location", Shape::Text, Absent::Dropped),
    field("ownership", Shape::Text, Absent::Dropped),
    field("connection", Shape::Dict, Absent::Object),
    field("metadata", Shape::Dict, Absent::Object),
    field("settings", Shape::Dict, Absent::Object),
    field("mcp", Shape::Map(&Shape::Object(&MCP)), Absent::Object),
]);

const MODEL_PROVIDER: Table = table(&[
    field("base_url", Shape::Text, Absent::Refused),
    field("api_key", Shape::Text, Absent::Dropped),
    field("provider", Shape::Text, Absent::Dropped),
]);

const MCP: Table = table(&[
    field("url", Shape::Text, Absent::Refused),
    field("env", Shape::Map(&Shape::Text), Absent::Object),
    field("secrets", Shape::Map(&Shape::Text), Absent::Object),
]);

const COMPUTE: Table = table(&[
    field("name", Shape::Text, Absent::Dropped),
    field("description", Shape::Text, Absent::Text("")),
    field("resources", Shape::Object(&RESOURCES), Absent::Object),
]);

const RESOURCES: Table = table(&[
    field("limits", Shape::Map(&Shape::Text), Absent::Object),
    field("requests", Shape::Map(&Shape::Text), Absent::Object),
]);

/// Variables that the platform sets itself.
const RESERVED: [&str; 18] = [
    "AGENT_CONFIG_PATH",
    "NAT_CONFIG_PATH",
    "NEMO_JOB_ATTEMPT_ID",
    "NEMO_JOB_EPHEMERAL_TASK_STORAGE_PATH",
    "NEMO_JOB_FILESET",
    "NEMO_JOB_ID",
    "NEMO_JOB_PERSISTENT_JOB_STORAGE_PATH",
    "NEMO_JOB_SECRETS",
    "NEMO_JOB_STEP",
    "NEMO_JOB_STEP_CONFIG_FILE_PATH",
    "NEMO_JOB_STEP_CONFIG_STORAGE_PATH",
    "NEMO_JOB_TASK",
    "NEMO_JOB_WORKSPACE",
    "NHX_AGENT_NAME",
    "NHX_BASE_URL",
    "NHX_TASK_CONFIG",
    "NHX_WORKSPACE",
    "PYTHONPATH",
];

/// Prefixes of such variables.
const RESERVED_PREFIXES: [&str; 4] = ["NEMO_JOB_", "NEMO_WORKLOAD_", "NEMO_WORKFLOW_", "NHX_"];

/// Variables that the runner sets, or that would change what runs rather than what it knows.
const OURS: [&str; 12] = [
    "ERRAND_CONTEXT",
    "ERRAND_INPUT",
    "ERRAND_RUN",
    "FABRIC_ARTIFACTS",
    "FABRIC_HOME",
    "FABRIC_RUNTIME_ID",
    "HOME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
    "PYTHONHOME",
    "TMPDIR",
];

/// Variable → secret reference, as typed.
pub(crate) type Secrets = BTreeMap<String, String>;

/// Merges an environment spec into a configuration; the spec wins. The failure is the reason.
pub(crate) fn merge(config: &mut Value, spec: &Value) -> Result<Secrets, String> {
    for (from, to) in [
        ("provider", "provider"),
        ("workspace_path", "workspace"),
        ("artifacts_path", "artifacts"),
        ("control_location", "control_location"),
        ("ownership", "ownership"),
    ] {
        if let Some(value) = spec.get(from) {
            config["environment"][to] = value.clone();
        }
    }
    for part in ["connection", "metadata", "settings", "env"] {
        overlay(&mut config["environment"][part], &spec[part]);
    }
    if let Some(provider) = spec.get("model_provider_override") {
        override_model(config, provider);
    }
    let mut secrets = Secrets::new();
    collect(&mut secrets, &spec["secrets"])?;
    for (name, server) in spec["mcp"].as_object().into_iter().flatten() {
        // A server that the agent does not declare is none of its business.
        let declared = config.pointer_mut(&format!("/mcp/servers/{}", escape_pointer(name)));
        let Some(declared) = declared else { continue };
        declared["url"] = server["url"].clone();
        overlay(&mut declared["env"], &server["env"]);
        collect(&mut secrets, &server["secrets"])?;
    }
    no_plain_twin(config, &secrets)?;
    Ok(secrets)
}

/// Checks the names of the variables that secrets are bound to, and the references.
pub(crate) fn check_secrets(secrets: &Secrets) -> Result<(), String> {
    let reserved: Vec<_> =
        secrets.keys().map(String::as_str).filter(|name| is_reserved(name)).collect();
    if !reserved.is_empty() {
        let mut all = RESERVED.to_vec();
        all.extend(reserved.iter().copied().filter(|name| !RESERVED.contains(name)));
        all.sort_unstable();
        return Err(format!(
            "Secret env var(s) {} collide with reserved job env var name(s). Reserved names: {}.",
            reserved.join(", "),
            all.join(", ")
        ));
    }
    for (name, reference) in secrets {
        if !is_variable(name) {
            return Err(format!("Secret env var '{name}' is not a valid variable name."));
        }
        if !refs::is_secret_ref(reference) {
            return Err(format!(
                "Secret reference '{reference}' of env var '{name}' must be a secret name or \
                 'workspace/name'."
            ));
        }
    }
    Ok(())
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || OURS.contains(&name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_variable(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(rest)
}

fn collect(secrets: &mut Secrets, given: &Value) -> Result<(), String> {
    for (name, reference) in given.as_object().into_iter().flatten() {
        let reference = reference.as_str().unwrap_or_default();
        match secrets.get(name) {
            Some(known) if known != reference => {
                return Err(format!(
                    "Secret env var '{name}' is bound to conflicting references '{known}' and \
                     '{reference}' in the environment spec."
                ));
            }
            _ => secrets.insert(name.clone(), reference.to_owned()),
        };
    }
    Ok(())
}

/// A secret whose variable is also set in plain text would be decided by accident.
fn no_plain_twin(config: &Value, secrets: &Secrets) -> Result<(), String> {
    let servers = config.pointer("/mcp/servers").and_then(Value::as_object);
    let servers = servers.into_iter().flatten();
    let places = std::iter::once(("environment.env".to_owned(), &config["environment"]["env"]))
        .chain(servers.map(|(name, server)| (format!("mcp.servers.{name}.env"), &server["env"])));
    for (place, env) in places {
        let twins: Vec<_> =
            secrets.keys().map(String::as_str).filter(|name| env.get(*name).is_some()).collect();
        if !twins.is_empty() {
            return Err(format!(
                "Env var(s) {} are bound both as a secret and as a plaintext value ({place}). Use \
                 one or the other.",
                twins.join(", ")
            ));
        }
    }
    Ok(())
}

fn override_model(config: &mut Value, provider: &Value) {
    let model = &mut config["models"]["default"];
    if !model.is_object() {
        *model = json!({});
    }
    model["base_url"] = provider["base_url"].clone();
    if let Some(name) = provider.get("provider") {
        model["provider"] = name.clone();
    }
    if let Some(variable) = provider.get("api_key") {
        model["api_key_env"] = variable.clone();
    }
}

fn overlay(target: &mut Value, given: &Value) {
    let Some(given) = given.as_object().filter(|given| !given.is_empty()) else { return };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in given {
        target[key] = value.clone();
    }
}

fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn inside(path: &str) -> Result<String, String> {
    if path.starts_with('/') {
        return Err("Local workspace path must be relative to the agent base directory.".to_owned());
    }
    if path.contains('\0') || path.split('/').any(|segment| segment == "..") {
        return Err("Local workspace path must remain within the agent base directory.".to_owned());
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests;
