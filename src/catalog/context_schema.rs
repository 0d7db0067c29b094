//! Context schemas: what an agent demands of its jobs' context, and whether a context has it.
//!
//! A schema stands on its own. References are refused at registration, wherever a subschema can
//! stand, and no resolver for files or networks is compiled in. Schemas, their patterns and the
//! answers are bounded, so that neither registering one nor submitting to it costs much.

mod subschemas;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::shape::{Loc, Violation, is_deeper_than, pointer_step};
use subschemas::Subschemas;

/// Bytes of a schema, written as JSON.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Objects and lists within each other. Schemas are compiled by recursion.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Patterns of a schema. They are compiled anew for every context.
const MAX_PATTERNS: usize = 100;

/// Bytes of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// Steps back within one match of a pattern with look-around or back-references; a match that
/// needs more counts as none. Other patterns take time in proportion to the text.
const MAX_BACKTRACKS: usize = 10_000;

/// Bytes of a context that such patterns are tried on: their time may grow with its square.
const MAX_BACKTRACKED_BYTES: usize = 16 * 1024;

/// Subschemas times bytes of a context up to which an answer says what is wrong where: each error
/// within alternatives holds what it is about once more.
const MAX_EXPLAINED: usize = 10_000_000;

/// What one answer names at most.
const MAX_VIOLATIONS: usize = 50;

/// References would let a schema mean something else than what was registered.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Checks a schema that an agent is registered with.
pub(crate) async fn check_schema(schema: Value) -> Result<(), Refusal> {
    let found = tokio::task::spawn_blocking(move || schema_violations(&schema)).await;
    refuse_any(found)
}

/// Checks a context against the schema of the agent that is to get it.
pub(crate) async fn check_context(
    schema: Value,
    context: Map<String, Value>,
) -> Result<(), Refusal> {
    let context = Value::Object(context);
    let found = tokio::task::spawn_blocking(move || context_violations(&schema, &context)).await;
    refuse_any(found)
}

/// A panic on the other thread, whatever it was about, is no verdict on the request.
fn refuse_any(found: Result<Vec<Violation>, tokio::task::JoinError>) -> Result<(), Refusal> {
    match found {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => Err(found.into()),
        Err(error) => Err(Refusal::Unavailable(format!("context_schema was not checked: {error}"))),
    }
}

fn schema_violations(schema: &Value) -> Vec<Violation> {
    if let Some(reason) = too_large(schema) {
        return vec![schema_violation("", &reason, &Value::Null)];
    }
    let found: Vec<_> = Subschemas::of(schema)
        .flat_map(|(pointer, subschema)| misused(&pointer, subschema))
        .take(MAX_VIOLATIONS)
        .collect();
    if !found.is_empty() {
        return found;
    }
    match compile(schema) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let place = error.instance_path().as_str();
            vec![schema_violation(place, &error.to_string(), error.instance())]
        }
    }
}

fn too_large(schema: &Value) -> Option<String> {
    if is_deeper_than(MAX_SCHEMA_DEPTH, schema) {
        return Some(format!("is nested deeper than {MAX_SCHEMA_DEPTH} levels"));
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Some(format!("has {bytes} bytes, the limit is {MAX_SCHEMA_BYTES} bytes"));
    }
    let patterns: usize = Subschemas::of(schema).map(|(_, it)| patterns(it).len()).sum();
    (patterns > MAX_PATTERNS)
        .then(|| format!("has {patterns} patterns, the limit is {MAX_PATTERNS}"))
}

/// What may not stand in this one subschema.
fn misused(pointer: &str, subschema: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut refuse = |place: String, reason: String, input: &Value| {
        found.push(schema_violation(&format!("{pointer}/{place}"), &reason, input));
    };
    for keyword in REFERENCES {
        if let Some(reference) = subschema.get(keyword) {
            let reason = format!("'{keyword}' is not allowed, write the schema out");
            refuse(keyword.to_owned(), reason, reference);
        }
    }
    if let Some(dialect) = subschema.get("$schema")
        && let Some(uri) = dialect.as_str()
        && !is_known_dialect(uri)
    {
        let reason = format!("'{uri}' is not a known dialect, such as Draft 2020-12 or Draft 7");
        refuse("$schema".to_owned(), reason, dialect);
    }
    // Each by itself, before the meta-schemas of some dialects compile them without any limit.
    for (place, pattern) in patterns(subschema) {
        if let Err(error) = compile(&json!({"pattern": pattern})) {
            refuse(place, format!("the pattern cannot be used: {error}"), &json!(pattern));
        }
    }
    found
}

fn is_known_dialect(uri: &str) -> bool {
    use Draft::{Draft4, Draft6, Draft7, Draft201909, Draft202012};
    matches!(Draft::from_schema_uri(uri), Draft4 | Draft6 | Draft7 | Draft201909 | Draft202012)
}

/// The patterns of one subschema and where they stand in it.
fn patterns(subschema: &Value) -> Vec<(String, &str)> {
    let single = subschema.get("pattern").and_then(Value::as_str);
    let keys = subschema.get("patternProperties").and_then(Value::as_object);
    let keys = keys.into_iter().flat_map(Map::keys);
    let keys = keys.map(|key| (format!("patternProperties/{}", pointer_step(key)), key.as_str()));
    single.map(|pattern| ("pattern".to_owned(), pattern)).into_iter().chain(keys).collect()
}

fn schema_violation(pointer: &str, reason: &str, input: &Value) -> Violation {
    let mut loc = vec!["body".into(), "context_schema".into()];
    loc.extend(segments(pointer));
    Violation::rule(&loc, &format!("context_schema#{pointer}: {reason}"), input)
}

/// Compiles a schema with patterns of any kind.
fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
    options().with_pattern_options(patterns.size_limit(MAX_PATTERN_BYTES)).build(schema)
}

/// Compiles a schema without patterns that look around or back; `None` when it has some.
fn compile_linear(schema: &Value) -> Option<Validator> {
    let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
    options().with_pattern_options(patterns).build(schema).ok()
}

/// A schema is one of Draft 2020-12 unless it says otherwise.
///
/// `date-time` is what RFC 3339 says, to the letter: a zone is required, `t` and `z` may be lower
/// case, and a leap second stands at 23:59:60 UTC. The library's own check does all that.
fn options() -> ValidationOptions<'static> {
    jsonschema::options().offline().should_validate_formats(true)
}

fn context_violations(schema: &Value, context: &Value) -> Vec<Violation> {
    let validator = match compile_linear(schema) {
        Some(validator) => Ok(validator),
        None => {
            let bytes = context.to_string().len();
            if bytes > MAX_BACKTRACKED_BYTES {
                let text = format!(
                    "has {bytes} bytes, at most {MAX_BACKTRACKED_BYTES} are matched with the \
                     look-around or back-references of the agent's context_schema"
                );
                return vec![entry("value_error", "", None, &text, &Value::Null)];
            }
            compile(schema)
        }
    };
    match validator {
        Ok(validator) if validator.is_valid(context) => Vec::new(),
        Ok(_) if Subschemas::of(schema).count() * context.to_string().len() > MAX_EXPLAINED => {
            let text = "does not match the agent's context_schema; schema and context are too \
                        large to say where";
            vec![entry("value_error", "", None, text, &Value::Null)]
        }
        Ok(validator) => {
            let errors = validator.iter_errors(context).take(MAX_VIOLATIONS);
            errors.flat_map(|error| explain(schema, &error)).take(MAX_VIOLATIONS).collect()
        }
        // It was valid when it was registered; other versions of this program may judge otherwise.
        Err(error) => vec![Violation::rule(
            &["body".into(), "spec".into(), "agent".into()],
            &format!("the agent's context_schema cannot be used: {error}"),
            &Value::Null,
        )],
    }
}

/// One entry for each key that is wrong.
fn explain(schema: &Value, error: &ValidationError<'_>) -> Vec<Violation> {
    let place = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = known_keys(schema, error.schema_path().as_str());
            let entry = |key: &String| {
                let hint = similar(key, &known).map(|known| format!(", did you mean `{known}`"));
                let text = format!("unknown key{}", hint.unwrap_or_default());
                entry("extra_forbidden", place, Some(key), &text, &error.instance()[key.as_str()])
            };
            unexpected.iter().take(MAX_VIOLATIONS).map(entry).collect()
        }
        ValidationErrorKind::Required { property } => {
            let key = property.as_str();
            vec![entry("missing", place, key, "required key is missing", error.instance())]
        }
        _ => {
            let text = error.masked_with("the value").to_string();
            vec![entry("value_error", place, None, &text, error.instance())]
        }
    }
}

fn entry(
    kind: &'static str,
    place: &str,
    key: Option<&str>,
    text: &str,
    input: &Value,
) -> Violation {
    let mut loc: Vec<Loc> = vec!["context".into()];
    loc.extend(segments(place));
    loc.extend(key.map(Loc::from));
    let path = loc.iter().map(Loc::to_string).collect::<Vec<_>>().join(".");
    loc.splice(0..0, ["body".into(), "spec".into()]);
    // Whole objects would be quoted once for each of their keys.
    let quoted = if input.is_object() || input.is_array() { &Value::Null } else { input };
    Violation::new(kind, &loc, format!("{path}: {text}"), quoted)
}

/// The keys that stand beside the keyword at this place of a schema.
fn known_keys<'s>(schema: &'s Value, keyword: &str) -> Vec<&'s str> {
    let beside = keyword.rsplit_once('/').and_then(|(parent, _)| schema.pointer(parent));
    let properties = beside.and_then(|subschema| subschema["properties"].as_object());
    properties.into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

/// The known key that was probably meant.
fn similar<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(key, known);
    let nearest = known.iter().copied().min_by_key(distance)?;
    (distance(&nearest) <= (key.chars().count() / 3).max(1)).then_some(nearest)
}

/// The steps of a JSON pointer.
fn segments(pointer: &str) -> impl Iterator<Item = Loc> {
    pointer.split('/').skip(1).map(|segment| match segment.parse() {
        Ok(index) => Loc::Index(index),
        Err(_) => Loc::Key(segment.replace("~1", "/").replace("~0", "~")),
    })
}

#[cfg(test)]
mod tests;
