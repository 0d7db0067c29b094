//! Filters of job lists, in the JSON and the bracket form. What records cannot answer yet is
//! refused, never ignored.

use serde_json::{Map, Value, json};
use streams::outcome::Status;

use super::error::{Answer, ApiError};
use super::list::Pairs;

/// Every field of a job that the reference can filter by, as its refusal lists them.
const FIELDS: [&str; 10] = [
    "created_at",
    "entity_type",
    "id",
    "name",
    "project",
    "source",
    "spec",
    "status",
    "updated_at",
    "workspace",
];

/// The operators that there are.
const OPERATORS: [&str; 15] = [
    "$and",
    "$or",
    "$not",
    "$eq",
    "$like",
    "$lt",
    "$lte",
    "$gt",
    "$gte",
    "$in",
    "$nin",
    "$contains",
    "$elemMatch",
    "$startsWith",
    "$endsWith",
];

/// Which jobs are wanted. A field that is not asked for is `None`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filter {
    pub names: Option<Vec<String>>,
    pub sources: Option<Vec<String>>,
    pub statuses: Option<Vec<String>>,
    pub agent_refs: Option<Vec<String>>,
    /// What is wanted, in the canonical form that answers echo; `None` without a filter.
    pub echo: Option<Value>,
}

/// Which list is filtered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    /// All jobs.
    Generic,
    /// Execute jobs: there is no source to ask for, and a status must be one.
    Typed,
}

/// Reads the filter of a query.
pub(super) fn read(pairs: &Pairs, collection: Collection) -> Answer<Filter> {
    let fields = match pairs.get("filter") {
        Some(text) => json_form(text)?,
        None => bracket_form(pairs)?,
    };
    let mut filter = Filter::default();
    let mut echo = Vec::new();
    for (field, condition) in fields {
        let conditions = match condition {
            Value::Object(operators) => operators,
            value => Map::from_iter([("$eq".to_owned(), value)]),
        };
        for (operator, value) in conditions {
            take(&mut filter, collection, &field, &operator, &value)?;
            let shown = match collection {
                Collection::Generic if field.starts_with("spec.") => format!("data.{field}"),
                _ => field.clone(),
            };
            echo.push(json!({shown: {operator: value}}));
        }
    }
    filter.echo = match echo.len() {
        0 => None,
        1 => echo.pop(),
        _ => Some(json!({"$and": echo})),
    };
    Ok(filter)
}

fn json_form(text: &str) -> Answer<Vec<(String, Value)>> {
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("Filter query cannot be empty"));
    }
    if !text.trim_start().starts_with('{') {
        return Err(ApiError::bad_request(
            "The text form of filters is not supported; use JSON or filter[field]=value.",
        ));
    }
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
        return Err(ApiError::bad_request(format!("Invalid JSON in filter parameter: {text}")));
    };
    if fields.is_empty() {
        return Err(ApiError::bad_request("No valid filter criteria found"));
    }
    let mut flat = Vec::new();
    flatten(fields, &mut flat)?;
    Ok(flat)
}

/// Takes `$and` apart: its parts are what several fields side by side are.
fn flatten(fields: Map<String, Value>, flat: &mut Vec<(String, Value)>) -> Answer<()> {
    let siblings = fields.len() > 1;
    let keys: Vec<_> = fields.keys().map(|key| format!("'{key}'")).collect();
    for (field, value) in fields {
        match (field.as_str(), value) {
            ("$and" | "$or" | "$not", _) if siblings => {
                return Err(ApiError::bad_request(format!(
                    "Top-level filter mixes a logical operator with sibling keys ([{}]); wrap the \
                     siblings inside the logical operator or under an explicit $and",
                    keys.join(", ")
                )));
            }
            ("$and", Value::Array(parts)) => {
                for part in parts {
                    let Value::Object(part) = part else {
                        return Err(ApiError::bad_request("'$and' takes a list of objects"));
                    };
                    flatten(part, flat)?;
                }
            }
            (operator, _) if operator.starts_with('$') => return Err(no_operator(operator)),
            (_, value) => flat.push((field, value)),
        }
    }
    Ok(())
}

/// `filter[field]=value` and `filter[field][$in]=a,b`; the `$` may be left out.
fn bracket_form(pairs: &Pairs) -> Answer<Vec<(String, Value)>> {
    let mut fields: Vec<(String, Value)> = Vec::new();
    for (key, value) in pairs.iter() {
        let Some(inner) = key.strip_prefix("filter[").and_then(|key| key.strip_suffix(']')) else {
            continue;
        };
        let (field, condition) = match inner.split_once("][") {
            None => (inner, json!(value)),
            Some((field, operator)) => {
                let operator = format!("${}", operator.trim_start_matches('$'));
                let value = match operator.as_str() {
                    "$in" | "$nin" => json!(value.split(',').collect::<Vec<_>>()),
                    _ => json!(value),
                };
                (field, json!({operator: value}))
            }
        };
        fields.push((field.to_owned(), condition));
    }
    Ok(fields)
}

/// Adds one condition to the filter.
fn take(
    filter: &mut Filter,
    collection: Collection,
    field: &str,
    operator: &str,
    value: &Value,
) -> Answer<()> {
    let wanted = match field {
        "name" => &mut filter.names,
        "status" => &mut filter.statuses,
        "spec.agent_ref" => &mut filter.agent_refs,
        "source" if collection == Collection::Generic => &mut filter.sources,
        other => return Err(no_field(collection, other)),
    };
    let values = match (operator, value) {
        ("$eq", Value::String(value)) => vec![value.clone()],
        // A list is equal to none of these fields.
        ("$eq", Value::Array(_)) => Vec::new(),
        ("$in", Value::String(values)) => values.split(',').map(str::to_owned).collect(),
        ("$in", Value::Array(values)) => {
            values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        ("$eq" | "$in", other) => {
            return Err(ApiError::bad_request(format!(
                "Filter field '{field}' takes text, got {other}"
            )));
        }
        (operator, _) if OPERATORS.contains(&operator) => {
            return Err(ApiError::bad_request(format!(
                "Operator '{operator}' is not supported on '{field}'; use one of ['$eq', '$in']"
            )));
        }
        (operator, _) => return Err(no_operator(operator)),
    };
    if field == "status" && collection == Collection::Typed {
        check_statuses(&values)?;
    }
    // Several conditions on a field must all hold.
    let values = match wanted.take() {
        None => values,
        Some(known) => known.into_iter().filter(|value| values.contains(value)).collect(),
    };
    *wanted = Some(values);
    Ok(())
}

fn check_statuses(words: &[String]) -> Answer<()> {
    let Some(wrong) = words.iter().find(|word| word.parse::<Status>().is_err()) else {
        return Ok(());
    };
    let mut valid: Vec<_> = Status::ALL.iter().map(|status| format!("'{status}'")).collect();
    valid.sort_unstable();
    Err(ApiError::bad_request(format!(
        "Invalid status value '{wrong}'; valid values: [{}]",
        valid.join(", ")
    )))
}

fn no_operator(operator: &str) -> ApiError {
    if OPERATORS.contains(&operator) {
        let text = format!("Operator '{operator}' is not supported here; use $and, $eq and $in");
        return ApiError::bad_request(text);
    }
    ApiError::bad_request(format!("'{operator}' is not a valid FilterOperator"))
}

fn no_field(collection: Collection, field: &str) -> ApiError {
    let valid =
        FIELDS.iter().filter(|name| collection == Collection::Generic || **name != "source");
    let valid: Vec<_> = valid.copied().collect();
    if valid.contains(&field) || field.starts_with("spec.") {
        return ApiError::bad_request(format!(
            "Filtering by '{field}' is not supported; use one of ['name', 'source', \
             'spec.agent_ref', 'status']"
        ));
    }
    let valid: Vec<_> = valid.iter().map(|name| format!("'{name}'")).collect();
    ApiError::bad_request(format!(
        "Unknown filter field '{field}'. Valid fields: [{}]",
        valid.join(", ")
    ))
}

#[cfg(test)]
mod tests;
