//! The body of an execute request, as tables, and what is read from it. Whether what it names
//! exists is not asked here.

use serde::Deserialize;
use serde_json::{Map, Value};
use streams::outcome::Status;
use workers::actions;

use super::agent_config;
use super::environment::ENVIRONMENT;
use super::image;
use super::refs;
use super::shape::{Absent, Loc, POSITIVE, Shape, Table, Unknown, Violation, field, read, table};

/// The shape of names, for every body that has one.
pub(crate) const NAME: Shape =
    Shape::Pattern { pattern: refs::NAME_PATTERN, matches: refs::is_name };

/// The longest name of a job: its fileset is called `job-fileset-<name>`.
const JOB_NAME_LENGTH: usize = refs::NAME_LENGTH - refs::JOB_FILESET.len();

/// The body of an execute request.
pub(crate) const BODY: Table = Table {
    fields: &[
        field("name", NAME, Absent::Null),
        field("description", Shape::Text, Absent::Null),
        field("project", Shape::Text, Absent::Null),
        field("spec", Shape::Object(&SPEC), Absent::Refused),
        field("profile", Shape::Text, Absent::Null),
        field("options", Shape::Dict, Absent::Null),
        field("ownership", Shape::Dict, Absent::Null),
        field("custom_fields", Shape::Dict, Absent::Null),
        field("output_location", Shape::Text, Absent::Null),
    ],
    unknown: Unknown::Refused,
    rule: job_name_fits,
};

pub(crate) const SPEC: Table = table(&[
    field(
        "agent",
        Shape::TextOr { text: &Shape::Checked(refs::agent_ref), object: &INLINE_AGENT },
        Absent::Refused,
    ),
    // Required unless the agent declares a default, which is known only later.
    field("input", Shape::Text, Absent::Dropped),
    field("environment", Shape::TextOr { text: &Shape::Text, object: &ENVIRONMENT }, Absent::Null),
    field("workdir", Shape::Object(&WORKDIR), Absent::Null),
    field("timeout_seconds", Shape::Number(POSITIVE), Absent::Number(3600.0)),
    field("auto_telemetry", Shape::Bool, Absent::Bool(true)),
    field("image", Shape::Checked(image::check_requested), Absent::Text("")),
    field("context", Shape::Dict, Absent::Null),
    field("post_run_action", Shape::Object(&ACTION), Absent::Null),
    field("extension", Shape::Object(&ACTION), Absent::Dropped),
    field("max_attempts", Shape::Integer { least: 1, most: 100 }, Absent::Dropped),
    field("max_turns", Shape::Integer { least: 1, most: 4_294_967_295 }, Absent::Dropped),
    field("idle_timeout_seconds", Shape::Number(POSITIVE), Absent::Dropped),
    field("queue_timeout_seconds", Shape::Number(POSITIVE), Absent::Dropped),
    field("max_cost_usd", Shape::Number(POSITIVE), Absent::Dropped),
    field("notify", Shape::Object(&NOTIFY), Absent::Dropped),
    field("expect_files", Shape::List(&Shape::Checked(expected_file)), Absent::Dropped),
]);

const INLINE_AGENT: Table = Table {
    fields: &[
        field("description", Shape::Text, Absent::Text("")),
        field("config", Shape::Dict, Absent::Object),
        field("config_format", Shape::Text, Absent::Text(agent_config::WORKFLOW_FORMAT)),
    ],
    unknown: Unknown::Refused,
    rule: runnable_inline_agent,
};

const WORKDIR: Table = Table {
    fields: &[
        field("base_workdir", Shape::Text, Absent::Null),
        field("artifact_mounts", Shape::List(&Shape::Object(&MOUNT)), Absent::List),
    ],
    unknown: Unknown::Refused,
    rule: mounts_do_not_overlap,
};

const MOUNT: Table = table(&[
    field("ref", Shape::Text, Absent::Refused),
    field("mount_path", Shape::Checked(refs::mount_path), Absent::Refused),
]);

const ACTION: Table = table(&[
    field("kind", Shape::Text, Absent::Refused),
    field("config", Shape::Dict, Absent::Object),
]);

/// What the registry has to say of it beside this is in `notify`.
const NOTIFY: Table = table(&[
    field("url", Shape::Text, Absent::Refused),
    field("secret", Shape::Text, Absent::Dropped),
    field("headers", Shape::Map(&Shape::Text), Absent::Dropped),
    field("timeout_seconds", Shape::Number(POSITIVE), Absent::Dropped),
    field("on", Shape::List(&Shape::Words(&["completed", "error", "cancelled"])), Absent::List),
]);

/// An execute request that is well formed.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    /// The job's name; made from its id when absent.
    pub name: Option<String>,
    pub description: Option<String>,
    pub project: Option<String>,
    pub profile: Option<String>,
    pub ownership: Option<Value>,
    pub custom_fields: Option<Map<String, Value>>,
    pub output_location: Option<String>,
    /// The spec, read and with its defaults.
    pub spec: Spec,
}

/// What is to be run.
#[derive(Debug, Deserialize)]
pub(crate) struct Spec {
    pub agent: Agent,
    pub input: Option<String>,
    pub environment: Option<Value>,
    pub workdir: Option<Workdir>,
    pub timeout_seconds: f64,
    pub idle_timeout_seconds: Option<f64>,
    pub queue_timeout_seconds: Option<f64>,
    pub image: String,
    pub context: Option<Map<String, Value>>,
    pub post_run_action: Option<Action>,
    pub max_attempts: Option<u32>,
    pub max_turns: Option<u32>,
    pub expect_files: Option<Vec<String>>,
    pub notify: Option<Notify>,
    #[serde(flatten)]
    pub others: Map<String, Value>,
    /// What is kept as `request`: as above, agent and environment as they were sent. With the
    /// defaults of an environment filled in, another job of it would be another job.
    #[serde(skip)]
    pub request: Value,
    /// As it was sent.
    #[serde(skip)]
    pub sent: Value,
}

/// Who is to be told of the job's end.
#[derive(Debug, Deserialize)]
pub(crate) struct Notify {
    pub on: Vec<Status>,
    #[serde(flatten)]
    pub webhook: Map<String, Value>,
}

/// A reference to an agent, or an agent.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Agent {
    Ref(String),
    Inline { config: Value },
}

/// References that the working directory is filled from, as typed.
#[derive(Debug, Deserialize)]
pub(crate) struct Workdir {
    pub base_workdir: Option<String>,
    pub artifact_mounts: Vec<Mount>,
}

/// A reference and where it goes.
#[derive(Debug, Deserialize)]
pub(crate) struct Mount {
    #[serde(rename = "ref")]
    pub reference: String,
    pub mount_path: String,
}

/// A post-run action, as named in a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Action {
    pub kind: String,
    pub config: Map<String, Value>,
}

impl Request {
    /// Reads a body. That of a submit fact is put together from its name and its spec, so that
    /// both refuse with the same words.
    pub(crate) fn read(body: &Value) -> Result<Self, Vec<Violation>> {
        let loc = ["body".into()];
        let mut read = read(&Shape::Object(&BODY), body, &loc)?;
        let spec = keep_older_names(&mut read["spec"], &body["spec"])?;
        let mut request: Self = typed(&read, &loc)?;
        request.spec.request = spec;
        request.spec.sent = body["spec"].clone();
        Ok(request)
    }
}

/// Moves `extension` to its present name, and makes what is kept as `request`.
fn keep_older_names(read: &mut Value, sent: &Value) -> Result<Value, Vec<Violation>> {
    let Some(fields) = read.as_object_mut() else { return Ok(Value::Null) };
    if let Some(extension) = fields.shift_remove("extension") {
        if !fields["post_run_action"].is_null() {
            let text = "extension is the older name of post_run_action; give one of them";
            let loc = ["body".into(), "spec".into(), "extension".into()];
            return Err(vec![Violation::rule(&loc, text, &extension)]);
        }
        fields.insert("post_run_action".to_owned(), extension);
    }
    let mut request = fields.clone();
    for as_typed in ["agent", "environment"] {
        request.insert(as_typed.to_owned(), sent[as_typed].clone());
    }
    Ok(Value::Object(request))
}

/// Makes a struct of what a table has read. It fits; should table and struct ever differ, the
/// request is refused with serde's words instead of a panic.
fn typed<T: serde::de::DeserializeOwned>(read: &Value, loc: &[Loc]) -> Result<T, Vec<Violation>> {
    T::deserialize(read).map_err(|error| vec![Violation::rule(loc, &error.to_string(), read)])
}

fn expected_file(path: &str) -> Result<String, String> {
    actions::check_path(path).map(|()| path.to_owned())
}

fn job_name_fits(body: &Map<String, Value>) -> Result<(), String> {
    let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
    if body.get("output_location").is_some_and(Value::is_string) {
        return Ok(());
    }
    fits_a_job(name)
}

/// Checks the length of a job's name.
pub(crate) fn fits_a_job(name: &str) -> Result<(), String> {
    if name.len() <= JOB_NAME_LENGTH {
        return Ok(());
    }
    Err(format!(
        "name must be at most {JOB_NAME_LENGTH} characters when output_location is not set, \
         because the job's artifact fileset is named '{}<name>'",
        refs::JOB_FILESET
    ))
}

fn runnable_inline_agent(agent: &Map<String, Value>) -> Result<(), String> {
    runnable(agent.get("config_format").and_then(Value::as_str).unwrap_or_default())?;
    match agent.get("config").and_then(Value::as_object) {
        Some(config) if !config.is_empty() => Ok(()),
        _ => Err("Inline agent definitions require a non-empty config.".to_owned()),
    }
}

/// Checks that a job can run agents of a format.
pub(crate) fn runnable(format: &str) -> Result<(), String> {
    if format == agent_config::FORMAT {
        return Ok(());
    }
    Err(format!(
        "Config format '{format}' is not supported; agents.execute jobs only support '{}'.",
        agent_config::FORMAT
    ))
}

fn mounts_do_not_overlap(workdir: &Map<String, Value>) -> Result<(), String> {
    let mounts = workdir.get("artifact_mounts").and_then(Value::as_array);
    let paths: Vec<_> =
        mounts.into_iter().flatten().filter_map(|mount| mount["mount_path"].as_str()).collect();
    match refs::overlap(&paths) {
        None => Ok(()),
        Some((one, other)) => {
            Err(format!("artifact_mounts contain overlapping mount paths: '{one}' and '{other}'"))
        }
    }
}

#[cfg(test)]
mod tests;
