//! What a filter means, read plainly: a second opinion on what its SQL says.

use std::cmp::Ordering;

use serde_json::Value;

use crate::records::filter::{Condition, Element, Kind, Order, Scalar, Test};

pub(super) fn holds(condition: &Condition, record: &Value) -> bool {
    match condition {
        Condition::All(parts) => parts.iter().all(|part| holds(part, record)),
        Condition::Any(parts) => parts.iter().any(|part| holds(part, record)),
        Condition::Not(part) => !holds(part, record),
        Condition::Test(field, test) => {
            let path: Vec<&str> = match field.column.kind {
                Kind::Document => field.path.iter().map(String::as_str).collect(),
                _ => field.column.name.split('.').collect(),
            };
            passes(test, at(record, &path))
        }
    }
}

/// What is at a path; null when nothing is.
fn at<'v>(record: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().fold(record, |value, key| match value {
        Value::Object(members) => members.get(*key).unwrap_or(&Value::Null),
        _ => &Value::Null,
    })
}

fn passes(test: &Test, value: &Value) -> bool {
    let text = value.as_str();
    match test {
        Test::Missing => value.is_null(),
        Test::OneOf(values) => values.iter().any(|it| compare(value, it) == Some(Ordering::Equal)),
        Test::NoneOf(values) => !value.is_null() && !passes(&Test::OneOf(values.clone()), value),
        Test::Same(wanted) => same(value, wanted),
        Test::Ordered(_, Scalar::Flag(_)) => false,
        Test::Ordered(order, bound) => compare(value, bound).is_some_and(|it| match order {
            Order::Before => it.is_lt(),
            Order::UpTo => it.is_le(),
            Order::After => it.is_gt(),
            Order::From => it.is_ge(),
        }),
        Test::Like(part) => {
            text.is_some_and(|text| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase()))
        }
        Test::StartsWith(start) => text.is_some_and(|text| text.starts_with(start)),
        Test::EndsWith(end) => text.is_some_and(|text| text.ends_with(end)),
        Test::HasKey(key) => value.as_object().is_some_and(|members| members.contains_key(key)),
        Test::Element(Element::Itself(tests)) => elements(value).any(|element| {
            !element.is_array()
                && !element.is_object()
                && tests.iter().all(|test| passes(test, element))
        }),
        Test::Element(Element::Members(members)) => elements(value).any(|element| {
            element.is_object()
                && members.iter().all(|(key, test)| passes(test, at(element, &[key])))
        }),
    }
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn compare(value: &Value, scalar: &Scalar) -> Option<Ordering> {
    match (value, scalar) {
        (Value::String(value), Scalar::Text(text)) => Some(value.as_bytes().cmp(text.as_bytes())),
        (Value::Number(value), Scalar::Number(number)) => {
            value.as_f64()?.partial_cmp(&number.as_f64()?)
        }
        (Value::Bool(value), Scalar::Flag(flag)) => Some(value.cmp(flag)),
        _ => None,
    }
}

fn same(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Number(value), Value::Number(wanted)) => value.as_f64() == wanted.as_f64(),
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len() && value.iter().zip(wanted).all(|(a, b)| same(a, b))
        }
        (Value::Object(value), Value::Object(wanted)) => {
            value.len() == wanted.len()
                && value.iter().all(|(key, a)| wanted.get(key).is_some_and(|b| same(a, b)))
        }
        _ => value == wanted,
    }
}
