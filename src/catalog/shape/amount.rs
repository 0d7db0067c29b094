//! How many values JSON holds. A value takes two bytes in a body and about a hundred in memory,
//! once for each form that a request goes through, so their number is bounded by itself.

use serde_json::Value;

/// Values of a request at most: scalars, lists and objects.
pub(crate) const MAX_VALUES: usize = 100_000;

/// The number of values in a text, before it is read. Of what is no JSON, any number.
pub(crate) fn of_text(json: &[u8]) -> usize {
    let (mut values, mut quoted, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            // Each begins another value; an empty list or object is counted as if it had one.
            b',' | b'[' | b'{' if !quoted => values += 1,
            _ => {}
        }
    }
    values
}

/// The number of values in a value that is not deep.
pub(super) fn of_value(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(of_value).sum(),
        Value::Object(fields) => fields.values().map(of_value).sum(),
        _ => 0,
    };
    1 + inner
}

/// What is said of more.
pub(crate) fn too_many() -> String {
    format!("JSON must not hold more than {MAX_VALUES} values")
}

#[cfg(test)]
mod tests;
