//! `nemo-agents-spec-v1`: what an agent's configuration may look like, as one table.
//!
//! Harness kinds are not checked here: which adapters there are is known where the agent runs.
//! Only `script`, which is our own, has settings that are.

use serde_json::{Map, Value};

use super::environment::{artifacts_inside, workspace_inside};
use super::shape::{
    Absent, FINITE, Field, POSITIVE, Range, Shape, Table, Unknown, Violation, field, read, table,
};

/// The format that runs as a job.
pub(crate) const FORMAT: &str = "nemo-agents-spec-v1";

/// The reference's other format: stored, but no job runs it.
pub(crate) const WORKFLOW_FORMAT: &str = "nat-workflow-v1";

const CONFIG: Table = Table {
    fields: &[
        field("config_format", Shape::Words(&[FORMAT]), Absent::Refused),
        field("name", Shape::Text, Absent::Refused),
        field("description", Shape::Text, Absent::Text("")),
        field("default_harness", Shape::Text, Absent::Dropped),
        field("harnesses", Shape::Map(&Shape::Object(&HARNESS)), Absent::Object),
        field("workflow", Shape::Object(&WORKFLOW), Absent::Dropped),
        field("models", Shape::Map(&Shape::Object(&MODEL)), Absent::Object),
        field("prompts", Shape::Map(&Shape::Text), Absent::Object),
        field("instructions", Shape::Object(&INSTRUCTIONS), Absent::Dropped),
        field("skills", Shape::Object(&SKILLS), Absent::Dropped),
        field("mcp", Shape::Object(&MCP), Absent::Dropped),
        field("tools", Shape::Object(&TOOLS), Absent::Dropped),
        field("runtime", Shape::Object(&RUNTIME), Absent::Object),
        field("environment", Shape::Object(&ENVIRONMENT), Absent::Object),
        field("telemetry", Shape::Object(&TELEMETRY), Absent::Object),
    ],
    unknown: Unknown::Refused,
    rule: harness_or_workflow,
};

const HARNESS: Table = Table {
    fields: &[
        field("kind", Shape::Text, Absent::Refused),
        field("model", Shape::Object(&MODEL), Absent::Dropped),
        field("settings", Shape::Dict, Absent::Object),
    ],
    unknown: Unknown::Refused,
    rule: a_script_has_a_command,
};

const WORKFLOW: Table = table(&[
    field("target_id", Shape::Checked(not_blank), Absent::Refused),
    field("settings", Shape::Dict, Absent::Object),
]);

const MODEL_FIELDS: &[Field] = &[
    field("provider", Shape::Text, Absent::Refused),
    field("model", Shape::Text, Absent::Refused),
    field("api_key_env", Shape::Text, Absent::Dropped),
    field("base_url", Shape::Text, Absent::Dropped),
    field("temperature", Shape::Number(FINITE), Absent::Dropped),
    field("top_p", Shape::StrictNumber(SHARE), Absent::Dropped),
    field("max_tokens", Shape::Integer { least: 1, most: u64::MAX }, Absent::Dropped),
    field("settings", Shape::Dict, Absent::Object),
    field("extensions", Shape::Dict, Absent::Object),
];

const MODEL: Table =
    Table { fields: MODEL_FIELDS, unknown: Unknown::Refused, rule: extensions_are_no_fields };

const SHARE: Range = Range { above: None, least: Some(0.0), most: Some(1.0) };

const INSTRUCTIONS: Table = table(&[field("system", Shape::Object(&SYSTEM), Absent::Dropped)]);

const SYSTEM: Table = table(&[
    field("content", Shape::Checked(not_blank), Absent::Refused),
    field("mode", Shape::Words(&["replace"]), Absent::Text("replace")),
]);

const SKILLS: Table = table(&[field("paths", Shape::List(&Shape::Text), Absent::List)]);

const MCP: Table = table(&[field("servers", Shape::Map(&Shape::Object(&SERVER)), Absent::Object)]);

const SERVER: Table = table(&[
    field("transport", Shape::Text, Absent::Refused),
    field("url", Shape::Text, Absent::Refused),
    field("args", Shape::List(&Shape::Text), Absent::List),
    field("env", Shape::Map(&Shape::Text), Absent::Object),
    field("custom_headers", Shape::Map(&Shape::Text), Absent::Object),
    field(
        "exposure",
        Shape::Words(&["harness_native", "fabric_managed"]),
        Absent::Text("harness_native"),
    ),
    // Absent means every tool, an empty list none.
    field("allowed_tools", Shape::List(&Shape::Text), Absent::Dropped),
    field("blocked_tools", Shape::List(&Shape::Text), Absent::List),
]);

const TOOLS: Table = table(&[field("blocked", Shape::List(&Shape::Text), Absent::List)]);

const RUNTIME: Table = table(&[
    field("artifacts", Shape::Checked(artifacts_inside), Absent::Dropped),
    field("timeout_seconds", Shape::Number(POSITIVE), Absent::Dropped),
    field("max_turns", Shape::Integer { least: 1, most: 4_294_967_295 }, Absent::Dropped),
]);

const ENVIRONMENT: Table = table(&[
    field("provider", Shape::Text, Absent::Text("local")),
    field("workspace", Shape::Checked(workspace_inside), Absent::Text("./workspace")),
    field("artifacts", Shape::Checked(artifacts_inside), Absent::Text("./artifacts")),
    field("settings", Shape::Dict, Absent::Object),
    field("env", Shape::Map(&Shape::Text), Absent::Object),
    field("control_location", Shape::Text, Absent::Dropped),
    field("ownership", Shape::Text, Absent::Dropped),
    field("connection", Shape::Dict, Absent::Object),
    field("metadata", Shape::Dict, Absent::Object),
]);

const TELEMETRY: Table = table(&[
    field("enabled", Shape::Bool, Absent::Dropped),
    field("provider", Shape::Text, Absent::Dropped),
    field("output_dir", Shape::Text, Absent::Dropped),
    field("project", Shape::Text, Absent::Dropped),
    field("agent_name", Shape::Text, Absent::Dropped),
    field("atif", Shape::Dict, Absent::Dropped),
    field("atof", Shape::Dict, Absent::Dropped),
    field("opentelemetry", Shape::Dict, Absent::Dropped),
]);

/// Checks a configuration and fills its defaults in. The failure is the text of all that is
/// wrong with it, in the form that users of the reference know.
pub fn normalise(config: &Value) -> Result<Map<String, Value>, String> {
    match read(&Shape::Object(&CONFIG), config, &[]) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(other) => Err(format!("expected an object, got {other}")),
        Err(violations) => Err(describe("AgentConfig", &violations)),
    }
}

/// All violations as one text.
pub(crate) fn describe(what: &str, violations: &[Violation]) -> String {
    let plural = if violations.len() == 1 { "" } else { "s" };
    let mut text = format!("{} validation error{plural} for {what}", violations.len());
    for violation in violations {
        if !violation.loc.is_empty() {
            text.push_str(&format!("\n{}", violation.path()));
        }
        text.push_str(&format!("\n  {} [type={}]", violation.msg, violation.kind));
    }
    text
}

fn harness_or_workflow(config: &Map<String, Value>) -> Result<(), String> {
    let harnesses = config.get("harnesses").and_then(Value::as_object);
    let names: Vec<_> = harnesses.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let default = config.get("default_harness").and_then(Value::as_str);
    match (config.contains_key("workflow"), default) {
        (true, Some(_)) => Err("workflow and harness selection are mutually exclusive".to_owned()),
        (true, None) if !names.is_empty() => {
            Err("workflow and harness selection are mutually exclusive".to_owned())
        }
        (true, None) => Ok(()),
        (false, None) => Err("Configure workflow or default_harness with harnesses".to_owned()),
        (false, Some(_)) if names.is_empty() => {
            Err("Configure workflow or default_harness with harnesses".to_owned())
        }
        (false, Some(default)) if !names.contains(&default) => {
            let mut names = names;
            names.sort_unstable();
            Err(format!("default_harness must reference one of harnesses: {}", names.join(", ")))
        }
        (false, Some(_)) => Ok(()),
    }
}

fn a_script_has_a_command(harness: &Map<String, Value>) -> Result<(), String> {
    if harness.get("kind").is_none_or(|kind| kind != "script") {
        return Ok(());
    }
    let command = harness.get("settings").and_then(|settings| settings["command"].as_array());
    let is_word =
        |word: &Value| word.as_str().is_some_and(|word| !word.is_empty() && !word.contains('\0'));
    match command {
        Some(words) if !words.is_empty() && words.iter().all(is_word) => Ok(()),
        _ => Err("the script harness needs settings.command: the program and its arguments, a \
                  list of texts that are not empty and hold no NUL character"
            .to_owned()),
    }
}

fn extensions_are_no_fields(model: &Map<String, Value>) -> Result<(), String> {
    let extensions = model.get("extensions").and_then(Value::as_object);
    let mut clashes: Vec<_> = extensions
        .into_iter()
        .flat_map(Map::keys)
        .filter(|key| MODEL_FIELDS.iter().any(|field| field.name == key.as_str()))
        .map(String::as_str)
        .collect();
    if clashes.is_empty() {
        return Ok(());
    }
    clashes.sort_unstable();
    Err(format!(
        "Model extensions may not override declared model fields: {}. Set these as top-level \
         model fields instead of under extensions.",
        clashes.join(", ")
    ))
}

fn not_blank(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be blank".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests;
