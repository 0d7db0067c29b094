//! JSON Schemas of configurations: compiled once, formats asserted, and everything that is wrong
//! said at once, in the words in which the rest of a request is refused.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

/// Words that would lead out of a schema, or round in it for ever.
const FORBIDDEN: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What configurations an action accepts.
#[derive(Debug)]
pub(super) struct Schema {
    shown: Value,
    validator: Option<Validator>,
}

impl Schema {
    /// Compiles a schema; without one, any configuration is accepted.
    pub(super) fn compile(schema: Option<Value>) -> Result<Self, String> {
        let Some(schema) = schema else { return Ok(Self { shown: Value::Null, validator: None }) };
        if let Some(word) = forbidden(&schema) {
            return Err(format!("it must not use '{word}'"));
        }
        let validator = jsonschema::options().should_validate_formats(true).build(&schema);
        let validator = validator.map_err(|error| format!("it is no JSON Schema: {error}"))?;
        Ok(Self { shown: schema, validator: Some(validator) })
    }

    /// As it was given.
    pub(super) fn shown(&self) -> &Value {
        &self.shown
    }

    /// Everything that is wrong with a configuration: where and why.
    pub(super) fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let config = Value::Object(config.clone());
        let errors = validator.iter_errors(&config);
        let mut reasons: Vec<_> = errors.flat_map(|error| reasons(&error, &config)).collect();
        // An object that may have no key at all is said once for each that it has.
        reasons.dedup();
        if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
    }
}

fn reasons(error: &ValidationError<'_>, config: &Value) -> Vec<String> {
    let pointer = error.instance_path().to_string();
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let extra = |key: &String| format!("{}: Extra inputs are not permitted", below(key));
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(extra).collect()
        }
        Kind::FalseSchema => match config.pointer(&pointer) {
            Some(Value::Object(fields)) => fields.keys().map(extra).collect(),
            _ => vec![format!("{path}: Extra inputs are not permitted")],
        },
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            vec![format!("{}: Field required", below(property))]
        }
        _ if path.is_empty() => vec![error.to_string()],
        _ => vec![format!("{path}: {error}")],
    }
}

/// Looks everywhere, also where the word would be a harmless name: a rule that needs no
/// exceptions can be checked by eye.
fn forbidden(schema: &Value) -> Option<&'static str> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            FORBIDDEN.into_iter().find(|word| word == key).or_else(|| forbidden(value))
        }),
        Value::Array(items) => items.iter().find_map(forbidden),
        _ => None,
    }
}
