//! The two ways in which a filter is written, as one JSON object each.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Answer, Pairs, refuse};

/// Brackets of a parameter at most, since each is an object within the one before.
const MOST_BRACKETS: usize = 16;

/// How a filter was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Values have types.
    Json,
    /// Every value is text; what it may stand for besides is the field's to know.
    Brackets,
}

/// `filter={…}`.
pub(super) fn json(text: &str) -> Answer<Map<String, Value>> {
    if text.trim().is_empty() {
        return refuse("Filter query cannot be empty");
    }
    if !text.trim_start().starts_with('{') {
        return refuse(
            "The text form of filters is not supported; use JSON, \
             filter={\"field\": {\"$in\": [\"a\", \"b\"]}}, or brackets, filter[field]=value or \
             filter[field][$gte]=value",
        );
    }
    match serde_json::from_str(text) {
        Ok(Unambiguous(Value::Object(fields))) if fields.is_empty() => {
            refuse("No valid filter criteria found")
        }
        Ok(Unambiguous(Value::Object(fields))) => Ok(fields),
        Err(error) if error.is_data() => {
            let text = error.to_string();
            let reason = text.rsplit_once(" at line ").map_or(&*text, |(reason, _)| reason);
            refuse(format!("Filter parameter: {reason}"))
        }
        _ => refuse(format!("Invalid JSON in filter parameter: {text}")),
    }
}

/// `filter[field]=value` and `filter[field][$operator]=value`, where the `$` may be left out.
/// What is said twice, or has commas, is a list.
pub(super) fn brackets(pairs: &Pairs) -> Answer<Map<String, Value>> {
    let mut fields = Map::new();
    for (key, value) in pairs.iter() {
        let Some(inner) = key.strip_prefix("filter[") else { continue };
        let Some(inner) = inner.strip_suffix(']') else {
            return refuse(format!(
                "Query parameter '{key}' is none of filter[field] and filter[field][$operator]"
            ));
        };
        if key.contains('\0') || value.contains('\0') {
            return refuse("Filter parameter: a text holds a NUL character, leave it out");
        }
        let mut path: Vec<String> = inner.split("][").map(str::to_owned).collect();
        if path.len() > MOST_BRACKETS {
            return refuse(format!(
                "Query parameter '{key}' has more than {MOST_BRACKETS} brackets"
            ));
        }
        let operator = path.last_mut().filter(|_| inner.contains("]["));
        let values = match operator {
            Some(operator) => match super::operator::Operator::of_brackets(operator) {
                Some(found) => {
                    *operator = found.word().to_owned();
                    if found.takes_a_list() { split(value) } else { vec![value.into()] }
                }
                None => split(value),
            },
            None => split(value),
        };
        if !insert(&mut fields, &path, values) {
            return refuse(format!("Query parameter '{key}' contradicts another one"));
        }
    }
    Ok(fields)
}

fn split(value: &str) -> Vec<Value> {
    value.split(',').map(Value::from).collect()
}

/// Puts values where a path says; false when something else is there.
fn insert(fields: &mut Map<String, Value>, path: &[String], values: Vec<Value>) -> bool {
    let Some((key, rest)) = path.split_first() else { return false };
    if !rest.is_empty() {
        let inner = fields.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
        return inner.as_object_mut().is_some_and(|inner| insert(inner, rest, values));
    }
    let there = match fields.shift_remove(key) {
        None => Vec::new(),
        Some(Value::Array(there)) => there,
        Some(text @ Value::String(_)) => vec![text],
        Some(_) => return false,
    };
    let mut all = [there, values].concat();
    let value = match all.len() {
        1 => all.remove(0),
        _ => Value::Array(all),
    };
    fields.insert(key.clone(), value);
    true
}

/// JSON in which no object has a key twice, and no text a NUL character: of two equal keys one
/// would be dropped without a word, and PostgreSQL cannot compare such a text.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl AnyValue {
    fn text<E: serde::de::Error>(text: &str) -> Result<String, E> {
        match text.contains('\0') {
            true => Err(E::custom("a text holds a NUL character, leave it out")),
            false => Ok(text.to_owned()),
        }
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        let number = Number::from_f64(number).ok_or_else(|| E::custom("a number is none"))?;
        Ok(number.into())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        Self::text(text).map(Value::from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Unambiguous(value))) = members.next_entry::<String, _>()? {
            let key = Self::text(&key)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "key '{key}' stands twice; put both conditions into an explicit $and"
                )));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}
