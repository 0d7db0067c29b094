//! From the object of a filter to the tree of its conditions, and to the canonical echo beside it.

use serde_json::{Map, Value, json};

use super::form::Form;
use super::operator::{self, Asked, Operator};
use super::{Answer, Filterable, listed, refuse};
use crate::records::filter::{Condition, Field, Kind, NoField};

/// Tests of a filter at most. SQLite bounds the depth of an expression.
const MOST_TESTS: usize = 100;

/// How deep `$and`, `$or` and `$not` may be nested.
const MOST_DEPTH: usize = 16;

/// A condition and its echo.
type Read = (Condition, Value);

pub(super) struct Reader<'f> {
    list: &'f Filterable,
    form: Form,
    tests: usize,
}

impl<'f> Reader<'f> {
    pub(super) const fn new(list: &'f Filterable, form: Form) -> Self {
        Self { list, form, tests: 0 }
    }

    pub(super) fn read(mut self, filter: Map<String, Value>) -> Answer<Read> {
        self.object(filter, 1)
    }

    /// One logical operator, or fields of which all must hold.
    fn object(&mut self, object: Map<String, Value>, depth: usize) -> Answer<Read> {
        if depth > MOST_DEPTH {
            return refuse(format!("A filter may be nested {MOST_DEPTH} deep, this one is deeper"));
        }
        if object.is_empty() {
            return refuse("No valid filter criteria found");
        }
        let logical = |key: &str| matches!(key, "$and" | "$or" | "$not");
        if object.len() > 1 && object.keys().any(|key| logical(key)) {
            return refuse(format!(
                "Top-level filter mixes a logical operator with sibling keys ({}); wrap the \
                 siblings inside the logical operator or under an explicit $and",
                listed(object.keys().map(String::as_str))
            ));
        }
        let mut parts = Vec::new();
        for (key, value) in object {
            match (key.as_str(), value) {
                ("$not", Value::Object(inner)) => {
                    let (condition, echo) = self.object(inner, depth + 1)?;
                    return Ok((Condition::Not(Box::new(condition)), json!({"$not": echo})));
                }
                ("$and" | "$or", Value::Array(items)) if !items.is_empty() => {
                    return self.logical(&key, items, depth);
                }
                ("$not", _) => return refuse("'$not' takes an object"),
                ("$and" | "$or", _) => {
                    return refuse(format!("'{key}' takes a list of at least one object"));
                }
                (word, _) if word.starts_with('$') => {
                    let Some(operator) = Operator::of(word) else { return unknown(word) };
                    let word = operator.word();
                    return refuse(format!(
                        "'{word}' belongs to a field: {{\"field\": {{\"{word}\": …}}}}"
                    ));
                }
                (name, value) => self.field(name, value, &mut parts)?,
            }
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => {
                let (conditions, echoes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                (Condition::All(conditions), json!({"$and": echoes}))
            }
        })
    }

    fn logical(&mut self, key: &str, items: Vec<Value>, depth: usize) -> Answer<Read> {
        let (mut conditions, mut echoes) = (Vec::new(), Vec::new());
        for item in items {
            let Value::Object(item) = item else {
                return refuse(format!("'{key}' takes a list of at least one object"));
            };
            let (condition, echo) = self.object(item, depth + 1)?;
            conditions.push(condition);
            echoes.push(echo);
        }
        let condition = match key {
            "$and" => Condition::All(conditions),
            _ => Condition::Any(conditions),
        };
        Ok((condition, json!({key: echoes})))
    }

    /// What is asked of a field: a value, or operators with theirs.
    fn field(&mut self, name: &str, asked: Value, parts: &mut Vec<Read>) -> Answer<()> {
        let field = self.find(name)?;
        let operators = match asked {
            Value::Object(operators) if operators.keys().any(|key| key.starts_with('$')) => {
                operators
            }
            Value::Object(object) if object.is_empty() => {
                return refuse(format!("Filter field '{name}' has no operator; give it a value"));
            }
            Value::Object(object) if field.kind() != Kind::Document => {
                return unknown(object.keys().next().map_or("", String::as_str));
            }
            // A field that is said twice in brackets, and a list by itself, mean any of them.
            list @ Value::Array(_) => Map::from_iter([("$in".to_owned(), list)]),
            value => Map::from_iter([("$eq".to_owned(), value)]),
        };
        for (word, value) in operators {
            let Some(operator) = Operator::of(&word) else { return unknown(&word) };
            let asked =
                Asked { name, kind: field.kind(), form: self.form, values: self.list.values };
            let (test, value) = operator::test(&asked, operator, value)?;
            self.tests += test.weight();
            if self.tests > MOST_TESTS {
                return refuse(format!(
                    "A filter may have {MOST_TESTS} conditions, this one has more"
                ));
            }
            let shown = match field.is_in_a_document() {
                true => {
                    let path = name.strip_prefix("data.").unwrap_or(name);
                    format!("{}{path}", self.list.documents)
                }
                false => name.to_owned(),
            };
            parts.push((Condition::Test(field.clone(), test), json!({shown: {word: value}})));
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Answer<Field> {
        let columns = self.list.columns;
        Field::find(columns, name).or_else(|error| match error {
            NoField::Part(_) | NoField::Deep => refuse(format!("Filter field '{name}': {error}")),
            NoField::Unknown => {
                let names = columns.iter().map(|column| column.name);
                refuse(format!(
                    "Unknown filter field '{name}'. Valid fields: {}",
                    listed(names.filter(|name| !name.contains('.')))
                ))
            }
        })
    }
}

fn unknown<T>(word: &str) -> Answer<T> {
    refuse(format!("'{word}' is not a valid FilterOperator"))
}
