//! Merges an environment spec into an agent's configuration, and collects its secrets.

use serde_json::{Map, Value, json};

use super::Secrets;
use crate::catalog::shape::pointer_step;

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
        let declared = config.pointer_mut(&format!("/mcp/servers/{}", pointer_step(name)));
        let Some(declared) = declared else { continue };
        declared["url"] = server["url"].clone();
        overlay(&mut declared["env"], &server["env"]);
        collect(&mut secrets, &server["secrets"])?;
    }
    no_plain_twin(config, &secrets)?;
    Ok(secrets)
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
