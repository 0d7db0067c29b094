//! Reads Fabric's run result: the reference's shape of it, the failure code, the tokens.

use errand_runner::{Failure, Usage};
use serde_json::{Map, Value, json};

use crate::fabric::codes;

/// `fabric_run_result` as the reference writes it.
pub(super) fn reference_shape(result: &Value) -> Value {
    let mut shape = Map::new();
    for (key, absent) in [
        ("status", Value::Null),
        ("output", Value::Null),
        ("response", Value::Null),
        ("error", Value::Null),
        ("artifacts", json!({})),
        ("telemetry", json!([])),
        ("events", json!([])),
        ("metadata", json!({})),
        ("runtime_id", Value::Null),
        ("invocation_id", Value::Null),
        ("request_id", Value::Null),
    ] {
        shape.insert(key.into(), result.get(key).cloned().unwrap_or(absent));
    }
    shape["response"] = result["output"]["response"].clone();
    // The agent can write the report itself, and what it kept is listed here.
    let mut artifacts = shape["artifacts"].as_object().cloned().unwrap_or_default();
    artifacts.entry("root").or_insert(Value::Null);
    if !artifacts.get("artifacts").is_some_and(Value::is_array) {
        artifacts.insert("artifacts".into(), json!([]));
    }
    shape["artifacts"] = artifacts.into();
    if let Some(error) = shape["error"].as_object_mut() {
        error.entry("metadata").or_insert_with(|| json!({}));
    }
    Value::Object(shape)
}

/// One sentence on why it failed.
pub(super) fn message(result: &Value) -> String {
    match result["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!(
            "the agent ended with status {}",
            result["status"].as_str().unwrap_or("unknown")
        ),
    }
}

/// The code of a run that did not succeed.
pub(super) fn failure(result: &Value) -> Failure {
    let text = |field: &str| result["error"][field].as_str().unwrap_or_default();
    codes::failure_of(text("code"), text("message"))
}

/// The tokens, as the reference counts them, or else as Fabric normalised them. A count that is
/// no whole number is worth nothing.
pub(super) fn usage(result: &Value) -> Option<Usage> {
    let reported = &result["output"]["usage"];
    let counted = counts(
        reported,
        &["input_tokens", "prompt_tokens"],
        &["cache_read_input_tokens", "cache_creation_input_tokens"],
        &["output_tokens", "completion_tokens"],
    );
    counted.or_else(|| counts(&result["usage"], &["input_tokens"], &[], &["output_tokens"]))
}

fn counts(usage: &Value, input: &[&str], cached: &[&str], output: &[&str]) -> Option<Usage> {
    let first = |names: &[&str]| names.iter().find_map(|name| usage.get(name))?.as_u64();
    let mut input_tokens = first(input)?;
    for name in cached {
        match usage.get(name) {
            None | Some(Value::Null) => {}
            Some(count) => input_tokens = input_tokens.checked_add(count.as_u64()?)?,
        }
    }
    Some(Usage { input_tokens, output_tokens: first(output)? })
}

#[cfg(test)]
mod tests;
