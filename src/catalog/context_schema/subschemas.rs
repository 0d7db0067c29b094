//! The subschemas of a JSON Schema: every place whose keywords mean something.
//!
//! Names of properties and data (`const`, `enum`, `default`, `examples`) are no subschemas, so
//! what stands there is never mistaken for a keyword. The dialects' keywords are taken together:
//! a schema that hides something under a keyword of another dialect is not worth telling apart.

use serde_json::Value;

use crate::catalog::shape::pointer_step;

/// Keywords with a subschema, or a list of them.
const SINGLE: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords with an object whose values are subschemas.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Goes through a schema and all its subschemas, with a JSON pointer to each. No recursion.
pub(super) struct Subschemas<'s> {
    ahead: Vec<(String, &'s Value)>,
}

impl<'s> Subschemas<'s> {
    pub(super) fn of(schema: &'s Value) -> Self {
        Self { ahead: vec![(String::new(), schema)] }
    }

    fn push(&mut self, pointer: &str, key: &str, value: &'s Value) {
        let pointer = format!("{pointer}/{}", pointer_step(key));
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                self.ahead.extend(items.map(|(n, item)| (format!("{pointer}/{n}"), item)));
            }
            Value::Object(_) => self.ahead.push((pointer, value)),
            // `true`, `false`, and what is no schema at all: there is nothing below.
            _ => {}
        }
    }
}

impl<'s> Iterator for Subschemas<'s> {
    type Item = (String, &'s Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (pointer, schema) = self.ahead.pop()?;
        for (key, value) in schema.as_object().into_iter().flatten() {
            if SINGLE.contains(&key.as_str()) {
                self.push(&pointer, key, value);
            } else if NAMED.contains(&key.as_str()) {
                let below = format!("{pointer}/{key}");
                for (name, named) in value.as_object().into_iter().flatten() {
                    self.push(&below, name, named);
                }
            }
        }
        Some((pointer, schema))
    }
}
