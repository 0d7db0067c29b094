//! JSON Schemas of everything that rides on NATS and that others may read or write, generated
//! from the Rust types into `streams/schemas/`.
//!
//! They are written for somebody who has only a NATS client: each describes the whole message and
//! names its subject.

use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde_json::{Map, Value, json};

use crate::envelope::VERSION;
use crate::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged, Submitted};
use crate::log::LogBatch;
use crate::phase::Phase;
use crate::snapshot::Snapshot;
use crate::status::StatusMessage;

/// Stands for a time in the schemas: RFC 3339, UTC.
pub(crate) struct DateTime;

impl JsonSchema for DateTime {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DateTime".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Where status messages are found.
const STATUS_PLACE: &str = "Subject: `status.<workspace>.<job>`. Once it is stored it is sent on to \
    `changes.<workspace>.<job>`, with its number in the header `Nats-Sequence`.";

/// File name → schema.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        fact::<Submitted>(),
        fact::<Resolved>(),
        fact::<Staged>(),
        fact::<Invoked>(),
        fact::<Acted>(),
        fact::<Archived>(),
        ("snapshot", of::<Snapshot>("Rides in the `resolved` fact, or in the store.")),
        ("status", of::<StatusMessage>(STATUS_PLACE)),
        ("log_batch", of::<LogBatch>("Subject: `logs.<workspace>.<job>`.")),
    ]
}

/// The schema of a type, with a sentence on where it is found.
fn of<T: JsonSchema>(place: &str) -> Schema {
    let mut schema = schema_for!(T);
    RecursiveTransform(without_rust).transform(&mut schema);
    let meaning = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = format!("{meaning} {place}");
    schema.insert("description".to_owned(), described.into());
    schema
}

/// The schema of a fact's whole message: the envelope's fields stand in the same object.
fn fact<F: Fact + JsonSchema>() -> (&'static str, Schema) {
    let phase = F::PHASE;
    let mut schema = of::<F>(&format!(
        "Subject: `jobs.{phase}.<workspace>.<job>`, with `%` and two hexadecimal digits for \
         characters of the workspace that mean something to NATS (`.` is `%2E`)."
    ));
    let mut properties = envelope();
    // Others may publish a submission and say as little as they like; the rest is ours.
    let mut required = match phase {
        Phase::Submitted => Vec::new(),
        _ => vec!["v".into(), "job".into(), "workspace".into(), "at".into()],
    };
    if let Some(Value::Object(own)) = schema.remove("properties") {
        properties.extend(own);
    }
    if let Some(Value::Array(own)) = schema.remove("required") {
        required.extend(own);
    }
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    (phase.token(), schema)
}

/// The envelope's fields.
fn envelope() -> Map<String, Value> {
    let text = |description: &str| json!({"description": description, "type": "string"});
    let formatted = |format: &str, description: &str| json!({"description": description, "type": "string", "format": format});
    let fields = [
        ("v", json!({"description": "Format version.", "const": VERSION})),
        ("job", formatted("uuid", "The job, as in the subject.")),
        ("workspace", text("Its workspace, as in the subject but not escaped.")),
        ("at", formatted("date-time", "When it happened.")),
        ("traceparent", text("W3C trace context of the submitter or of the step before.")),
    ];
    fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect()
}

/// Makes a doc comment plain text: links to Rust items become their names, lines are joined.
fn without_rust(schema: &mut Schema) {
    let Some(comment) = schema.get("description").and_then(Value::as_str) else { return };
    let mut text = String::new();
    let mut rest = comment;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((path, after)) = link.split_once("`]") else { break };
        let name = path.rsplit("::").next().unwrap_or(path);
        text.extend([before, "`", name, "`"]);
        rest = after;
    }
    text.push_str(rest);
    schema.insert("description".to_owned(), text.replace('\n', " ").into());
}

#[cfg(test)]
mod tests;
