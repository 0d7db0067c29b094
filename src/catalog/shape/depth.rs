//! How deep JSON is. Whoever goes through it by recursion asks here first; this goes without.

use serde_json::Value;

/// Whether objects and lists stand within each other more than `most` times.
pub(crate) fn is_deeper_than(most: usize, value: &Value) -> bool {
    let mut level: Vec<&Value> = vec![value];
    for _ in 0..=most {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}
