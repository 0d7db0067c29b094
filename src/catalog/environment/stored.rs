//! Stored environments and specs: what is kept of the body of one, and how it is shown again.
//!
//! What was not given is not kept. It only shows as its default: kept, it would override the
//! configuration of every agent. Whether a job can have what is stored is asked when there is one.

use serde_json::{Map, Value, json};

use super::{COMPUTE, ENVIRONMENT, MODEL_PROVIDER, SPEC};
use crate::catalog::request::NAME;
use crate::catalog::shape::{self, Absent, Shape, Table, Violation, field, table};
use crate::records::EnvironmentKind;

const NAMED: Table = table(&[field("name", NAME, Absent::Refused)]);

/// What one of a kind may hold, its name aside.
pub(crate) const fn body_of(kind: EnvironmentKind) -> &'static Table {
    match kind {
        EnvironmentKind::Environment => &ENVIRONMENT,
        EnvironmentKind::EnvironmentSpec => &SPEC,
        EnvironmentKind::ComputeSpec => &COMPUTE,
    }
}

/// Reads what is to be stored: its name, and the rest. Unknown keys are left out, as in the
/// reference, and so are names of inline parts.
pub(crate) fn read(kind: EnvironmentKind, sent: &Value) -> Result<(String, Value), Vec<Violation>> {
    let loc = ["body".into()];
    let name = shape::read_known(&Shape::Object(&NAMED), sent, &loc);
    let mut rest = sent.clone();
    let Some(fields) = rest.as_object_mut() else { return name.map(|_| Default::default()) };
    fields.shift_remove("name");
    let body = shape::read_known(&Shape::Object(body_of(kind)), &rest, &loc);
    let (name, mut body) = match (name, body) {
        (Ok(name), Ok(body)) => (name, body),
        (name, body) => {
            let wrong = [name.err(), body.err()];
            return Err(wrong.into_iter().flatten().flatten().collect());
        }
    };
    for part in ["environment_spec", "compute_spec"] {
        if let Some(inline) = body.get_mut(part).and_then(Value::as_object_mut) {
            inline.shift_remove("name");
        }
    }
    Ok((name["name"].as_str().unwrap_or_default().to_owned(), body))
}

/// A stored body with its defaults.
pub(crate) fn shown(kind: EnvironmentKind, body: &Value) -> Map<String, Value> {
    let mut shown = filled(body_of(kind), body);
    if kind == EnvironmentKind::EnvironmentSpec {
        fill_spec(&mut shown);
    }
    if let Some(inline) = shown.get("environment_spec").filter(|part| part.is_object()) {
        let mut spec = filled(&SPEC, inline);
        fill_spec(&mut spec);
        shown.insert("environment_spec".to_owned(), Value::Object(spec));
    }
    shown
}

fn fill_spec(spec: &mut Map<String, Value>) {
    if spec["provider"].is_null() {
        spec["provider"] = json!("local");
    }
    if spec["model_provider_override"].is_object() {
        let provider = filled(&MODEL_PROVIDER, &spec["model_provider_override"]);
        spec["model_provider_override"] = Value::Object(provider);
    }
}

/// All fields of a table but the name, null where nothing is kept.
fn filled(table: &Table, body: &Value) -> Map<String, Value> {
    let fields = table.fields.iter().filter(|field| field.name != "name");
    fields.map(|field| (field.name.to_owned(), body[field.name].clone())).collect()
}
