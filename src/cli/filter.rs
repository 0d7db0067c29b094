//! Filters of lists: field flags and a filter of the user's own become one.

use serde_json::{Map, Value, json};

use super::Usage;

/// Puts `fields` (name, values) into the filter; they win over it. Several values of a field mean
/// any of them. Text that is no JSON is a filter in the server's own grammar.
pub(super) fn combine(
    filter: Option<&str>,
    fields: &[(&str, &[String])],
) -> Result<Option<String>, Usage> {
    let wanted = wanted(fields);
    let Some(text) = filter else {
        return Ok((!wanted.is_empty()).then(|| Value::Object(wanted).to_string()));
    };
    if !text.trim_start().starts_with(['{', '[']) {
        if wanted.is_empty() {
            return Ok(Some(text.to_owned()));
        }
        let text = "--filter must be JSON when it stands beside --filter.FIELD";
        return Err(Usage(text.to_owned()));
    }
    let mut filter = match serde_json::from_str(text) {
        Ok(Value::Object(filter)) => filter,
        Ok(other) => return Err(Usage(format!("Invalid filter JSON: {other} is no object"))),
        Err(error) => return Err(Usage(format!("Invalid filter JSON: {error}"))),
    };
    // Beside $or or $not a field would be ambiguous.
    if !wanted.is_empty() && filter.keys().any(|key| key.starts_with('$')) {
        return Ok(Some(json!({"$and": [filter, wanted]}).to_string()));
    }
    filter.extend(wanted);
    Ok(Some(Value::Object(filter).to_string()))
}

/// The fields that were given.
fn wanted(fields: &[(&str, &[String])]) -> Map<String, Value> {
    let mut wanted = Map::new();
    for (field, values) in fields {
        let values = match values {
            [] => continue,
            [one] => json!(one),
            several => json!({"$in": several}),
        };
        wanted.insert((*field).to_owned(), values);
    }
    wanted
}

#[cfg(test)]
mod tests;
