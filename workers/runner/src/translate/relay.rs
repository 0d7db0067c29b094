//! The telemetry section of an agent definition, as Fabric's Relay wants it.

use serde_json::{Map, Value, json};

use super::{Error, object, without_nulls};

/// The version that Fabric 0.6 and its adapters 0.5 demand.
const OBSERVABILITY_VERSION: u32 = 4;

/// Switches Relay on in a configuration whose harness and models are translated already.
pub(super) fn add(config: &mut Value, agent: &Value) -> Result<(), Error> {
    let telemetry = &agent["telemetry"];
    if let Some(other) = telemetry["provider"].as_str().filter(|it| *it != "relay") {
        return Err(Error::Telemetry(other.into()));
    }
    let agent_name = match &telemetry["agent_name"] {
        Value::Null => agent["name"].clone(),
        given => given.clone(),
    };
    let mut observability = json!({"version": OBSERVABILITY_VERSION});
    if !telemetry["atif"].is_null() {
        let model_name = config["models"]["default"]["model"].clone();
        observability["atif"] = with_defaults(
            without_nulls(&telemetry["atif"]),
            &[
                ("output_directory", &telemetry["output_dir"]),
                ("agent_name", &agent_name),
                ("model_name", &model_name),
            ],
        );
    }
    if !telemetry["atof"].is_null() {
        observability["atof"] = atof(&telemetry["atof"]);
    }
    if !telemetry["opentelemetry"].is_null() {
        observability["opentelemetry"] = opentelemetry(&telemetry["opentelemetry"], &agent_name);
    }
    config["telemetry"] = json!({"providers": {"relay": {}}});
    config["relay"] = with_defaults(
        json!({"observability": observability}),
        &[("project", &telemetry["project"]), ("output_dir", &telemetry["output_dir"])],
    );
    if config["harness"]["adapter_id"] == "nvidia.fabric.pi" {
        add_pi_defaults(config);
    }
    Ok(())
}

/// One file sink from the section itself, one stream sink an endpoint.
fn atof(given: &Value) -> Value {
    let mut sinks = Vec::new();
    let mut file = Map::new();
    for field in ["output_directory", "filename", "mode"] {
        if !given[field].is_null() {
            file.insert(field.into(), given[field].clone());
        }
    }
    if !file.is_empty() {
        file.insert("type".into(), "file".into());
        sinks.push(Value::Object(file));
    }
    for endpoint in given["endpoints"].as_array().into_iter().flatten() {
        let mut sink = match endpoint.as_str() {
            Some(url) => Map::from_iter([("url".to_owned(), Value::from(url))]),
            None => object(&without_nulls(endpoint)),
        };
        sink.insert("type".into(), "stream".into());
        sinks.push(Value::Object(sink));
    }
    json!({"enabled": given["enabled"] == true, "sinks": sinks})
}

fn opentelemetry(given: &Value, agent_name: &Value) -> Value {
    let mut section = without_nulls(given);
    // An index would add the field where it is missing.
    let endpoints = section.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        *endpoint = with_defaults(without_nulls(endpoint), &[("service_name", agent_name)]);
    }
    section
}

fn add_pi_defaults(config: &mut Value) {
    let artifacts = &mut config["runtime"]["artifacts"];
    if artifacts.is_null() {
        *artifacts = "./artifacts/pi".into();
    }
    let extension = &mut config["harness"]["settings"]["relay_extension_path"];
    if extension.is_null() {
        *extension = "/opt/pi-relay-extension".into();
    }
}

fn with_defaults(mut section: Value, defaults: &[(&str, &Value)]) -> Value {
    for (field, default) in defaults {
        if section[field].is_null() && !default.is_null() {
            section[field] = (*default).clone();
        }
    }
    without_nulls(&section)
}
