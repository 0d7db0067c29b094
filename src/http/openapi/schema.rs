//! Shapes as JSON Schemas. What a rule written in code asks for has no schema and is not said.

use serde_json::{Map, Value, json};

use crate::catalog::shape::{Absent, Field, Range, Shape, Table, Unknown};

/// The schema of a table.
pub(super) fn of_table(table: &Table) -> Value {
    let properties = table.fields.iter().map(|field| (field.name.to_owned(), of_field(field)));
    let properties: Map<_, _> = properties.collect();
    let required = table.fields.iter().filter(|field| matches!(field.absent, Absent::Refused));
    let required: Vec<_> = required.map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    if table.unknown == Unknown::Refused {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

/// Every field but a required one may be null, which is absence.
fn of_field(field: &Field) -> Value {
    let schema = of_shape(&field.shape);
    let default = match field.absent {
        Absent::Refused => return schema,
        Absent::Dropped => None,
        Absent::Null => Some(Value::Null),
        Absent::Text(text) => Some(json!(text)),
        Absent::Number(number) => Some(json!(number)),
        Absent::Bool(flag) => Some(json!(flag)),
        Absent::List => Some(json!([])),
        Absent::Object => Some(json!({})),
    };
    let mut schema = json!({"anyOf": [schema, {"type": "null"}]});
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text | Shape::Checked(_) => json!({"type": "string"}),
        Shape::Pattern { pattern, .. } => json!({"type": "string", "pattern": pattern}),
        Shape::Short { most } => json!({"type": "string", "maxLength": most}),
        Shape::Words(words) => json!({"enum": words}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Number(range) | Shape::StrictNumber(range) => of_range(*range),
        Shape::Integer { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Shape::Json => json!({}),
        Shape::Dict => json!({"type": "object"}),
        Shape::Map(values) => json!({"type": "object", "additionalProperties": of_shape(values)}),
        Shape::List(items) => json!({"type": "array", "items": of_shape(items)}),
        Shape::Object(table) => of_table(table),
        Shape::TextOr { text, object } => json!({"anyOf": [of_shape(text), of_table(object)]}),
    }
}

fn of_range(range: Range) -> Value {
    let mut schema = json!({"type": "number"});
    let bounds =
        [("exclusiveMinimum", range.above), ("minimum", range.least), ("maximum", range.most)];
    for (keyword, bound) in bounds {
        if let Some(bound) = bound {
            schema[keyword] = json!(bound);
        }
    }
    schema
}
