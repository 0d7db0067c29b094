//! Filters of lists: field flags and a JSON filter become one.

use serde_json::{Map, Value, json};

use super::Usage;

/// Puts `fields` (name, values) into the JSON filter; they win over it. Several values of a field
/// mean any of them.
pub(super) fn combine(
    json: Option<&str>,
    fields: &[(&str, &[String])],
) -> Result<Option<String>, Usage> {
    let mut filter = match json {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(filter)) => filter,
            Ok(other) => return Err(Usage(format!("--filter: expected an object, got {other}"))),
            Err(error) => return Err(Usage(format!("--filter is not valid JSON: {error}"))),
        },
    };
    for (field, values) in fields {
        let wanted = match values {
            [] => continue,
            [one] => json!(one),
            several => json!({"$in": several}),
        };
        filter.insert((*field).to_owned(), wanted);
    }
    Ok((!filter.is_empty()).then(|| Value::Object(filter).to_string()))
}

#[cfg(test)]
mod tests;
