//! What can be asked of a field: the operators, and the values that each of them takes.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use streams::id::JobId;
use streams::outcome::Status;

use super::form::Form;
use super::{Answer, Values, listed, refuse};
use crate::records::filter::{Element, Kind, Order, Scalar, Test, is_part};

/// Values of a list at most.
const MOST_VALUES: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    In,
    Nin,
    Lt,
    Lte,
    Gt,
    Gte,
    Like,
    StartsWith,
    EndsWith,
    Contains,
    ElemMatch,
    HasKey,
}

use Operator::{
    Contains, ElemMatch, EndsWith, Equal, Gt, Gte, HasKey, In, Like, Lt, Lte, Nin, StartsWith,
};

/// The operators, in the order of their words.
const OPERATORS: [(&str, Operator); 13] = [
    ("$contains", Contains),
    ("$elemMatch", ElemMatch),
    ("$endsWith", EndsWith),
    ("$eq", Equal),
    ("$gt", Gt),
    ("$gte", Gte),
    ("$hasKey", HasKey),
    ("$in", In),
    ("$like", Like),
    ("$lt", Lt),
    ("$lte", Lte),
    ("$nin", Nin),
    ("$startsWith", StartsWith),
];

/// The field that something is asked of.
pub(super) struct Asked<'f> {
    pub(super) name: &'f str,
    pub(super) kind: Kind,
    pub(super) form: Form,
    pub(super) values: Values,
}

impl Operator {
    /// The operator of a word.
    pub(super) fn of(word: &str) -> Option<Self> {
        OPERATORS.iter().find(|(known, _)| *known == word).map(|(_, operator)| *operator)
    }

    /// The same, where the `$` may be left out.
    pub(super) fn of_brackets(word: &str) -> Option<Self> {
        Self::of(&format!("${}", word.strip_prefix('$').unwrap_or(word)))
    }

    pub(super) fn word(self) -> &'static str {
        OPERATORS.iter().find(|(_, operator)| *operator == self).map_or("", |(word, _)| word)
    }

    pub(super) const fn takes_a_list(self) -> bool {
        matches!(self, In | Nin)
    }

    const fn order(self) -> Option<Order> {
        match self {
            Lt => Some(Order::Before),
            Lte => Some(Order::UpTo),
            Gt => Some(Order::After),
            Gte => Some(Order::From),
            _ => None,
        }
    }
}

impl Asked<'_> {
    /// Whether it is the status of a list that checks them.
    fn is_checked_status(&self) -> bool {
        self.values == Values::Checked && self.name == "status"
    }

    fn supports(&self, operator: Operator) -> bool {
        let is_order = operator.order().is_some();
        match self.kind {
            Kind::Document => true,
            Kind::JobId => matches!(operator, Equal | In | Nin),
            Kind::Time if self.values == Values::Checked => is_order,
            Kind::Time => is_order || matches!(operator, Equal | In | Nin),
            Kind::Text if self.is_checked_status() => matches!(operator, Equal | In | Nin),
            Kind::Text => !matches!(operator, Contains | ElemMatch | HasKey),
        }
    }

    fn refuse<T>(&self, operator: Operator, takes: &str, got: &Value) -> Answer<T> {
        let (name, word) = (self.name, operator.word());
        refuse(format!("Operator '{word}' on '{name}' takes {takes}, got {got}"))
    }
}

/// What an operator and its value ask, and the value as it is echoed.
pub(super) fn test(asked: &Asked<'_>, operator: Operator, value: Value) -> Answer<(Test, Value)> {
    if !asked.supports(operator) {
        let all = OPERATORS.iter().filter(|(_, other)| asked.supports(*other));
        return refuse(format!(
            "Operator '{}' is not supported on '{}'; use one of {}",
            operator.word(),
            asked.name,
            listed(all.map(|(word, _)| *word))
        ));
    }
    let test = match operator {
        Equal => equal(asked, &value)?,
        In | Nin => {
            let values = match value {
                Value::String(words) => words.split(',').map(Value::from).collect(),
                Value::Array(values) => values,
                other => return asked.refuse(operator, "a list or text with commas", &other),
            };
            let scalars = scalars(asked, operator, &values)?;
            let test = match operator {
                In => Test::OneOf(scalars),
                _ => Test::NoneOf(scalars),
            };
            return Ok((test, Value::Array(values)));
        }
        Lt | Lte | Gt | Gte => ordered(asked, operator, &value)?,
        Like => Test::Like(text(asked, operator, &value)?),
        StartsWith => Test::StartsWith(text(asked, operator, &value)?),
        EndsWith => Test::EndsWith(text(asked, operator, &value)?),
        HasKey => Test::HasKey(text(asked, operator, &value)?),
        Contains => match &value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                Test::Element(Element::Itself(vec![equal(asked, &value)?]))
            }
            other => return asked.refuse(operator, "text, a number, true or false", other),
        },
        ElemMatch => match &value {
            Value::Object(criteria) if !criteria.is_empty() => element(asked, criteria)?,
            other => {
                let takes = "an object of members or operators that is not empty";
                return asked.refuse(operator, takes, other);
            }
        },
    };
    Ok((test, value))
}

fn equal(asked: &Asked<'_>, value: &Value) -> Answer<Test> {
    Ok(match value {
        Value::Null => Test::Missing,
        Value::Array(_) | Value::Object(_) if asked.kind == Kind::Document => {
            Test::Same(value.clone())
        }
        // No column is a list or an object.
        Value::Array(_) | Value::Object(_) => Test::OneOf(Vec::new()),
        scalar => Test::OneOf(coerce(asked, scalar)?),
    })
}

fn scalars(asked: &Asked<'_>, operator: Operator, values: &[Value]) -> Answer<Vec<Scalar>> {
    if values.len() > MOST_VALUES {
        return refuse(format!(
            "Operator '{}' on '{}' takes at most {MOST_VALUES} values, got {}",
            operator.word(),
            asked.name,
            values.len()
        ));
    }
    let mut scalars = Vec::with_capacity(values.len());
    for value in values {
        match value {
            // What is missing or null is in no list.
            Value::Null => {}
            Value::Array(_) | Value::Object(_) => {
                return asked.refuse(operator, "a list of text, numbers, true and false", value);
            }
            scalar => scalars.extend(coerce(asked, scalar)?),
        }
    }
    Ok(scalars)
}

/// The values of a field that a scalar stands for: none when the field has no such values.
fn coerce(asked: &Asked<'_>, scalar: &Value) -> Answer<Vec<Scalar>> {
    if asked.is_checked_status() {
        check_status(scalar)?;
    }
    Ok(match (asked.kind, scalar) {
        (Kind::Text, Value::String(text)) => vec![Scalar::Text(text.clone())],
        (Kind::Time, Value::String(text)) => vec![time(asked, text)?],
        (Kind::JobId, Value::String(text)) => {
            let id = text.parse::<JobId>().ok();
            id.map(|id| Scalar::Text(id.to_string())).into_iter().collect()
        }
        (Kind::Document, Value::String(text)) => {
            let spelled = spelled(asked.form, text);
            [Some(Scalar::Text(text.clone())), spelled].into_iter().flatten().collect()
        }
        (Kind::Document, Value::Number(number)) => vec![Scalar::Number(number.clone())],
        (Kind::Document, Value::Bool(flag)) => vec![Scalar::Flag(*flag)],
        _ => Vec::new(),
    })
}

/// What a text in brackets spells: they have no other way to say a number.
fn spelled(form: Form, text: &str) -> Option<Scalar> {
    if form == Form::Json {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        Value::Number(number) => Some(Scalar::Number(number)),
        Value::Bool(flag) => Some(Scalar::Flag(flag)),
        _ => None,
    }
}

fn ordered(asked: &Asked<'_>, operator: Operator, value: &Value) -> Answer<Test> {
    let order = operator.order().unwrap_or(Order::Before);
    let bound = match (asked.kind, value) {
        (Kind::Time, Value::String(text)) => time(asked, text)?,
        (Kind::Time, other) => return asked.refuse(operator, "a time", other),
        (Kind::Document, Value::Number(number)) => Scalar::Number(number.clone()),
        (Kind::Document, Value::String(text)) => match spelled(asked.form, text) {
            Some(number @ Scalar::Number(_)) => number,
            _ => Scalar::Text(text.clone()),
        },
        (Kind::Document, other) => return asked.refuse(operator, "a number or text", other),
        _ => Scalar::Text(text(asked, operator, value)?),
    };
    Ok(Test::Ordered(order, bound))
}

fn text(asked: &Asked<'_>, operator: Operator, value: &Value) -> Answer<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => asked.refuse(operator, "text", other),
    }
}

/// Criteria for one element: of the element itself, or of its members.
fn element(asked: &Asked<'_>, criteria: &Map<String, Value>) -> Answer<Test> {
    let inner = |operator: &str, value: &Value| -> Answer<Test> {
        match Operator::of(operator) {
            None => refuse(format!("'{operator}' is not a valid FilterOperator")),
            Some(nested @ (Contains | ElemMatch | HasKey)) => {
                refuse(format!("Operator '{}' is not supported inside '$elemMatch'", nested.word()))
            }
            Some(operator) => Ok(test(asked, operator, value.clone())?.0),
        }
    };
    if criteria.keys().all(|key| key.starts_with('$')) {
        let tests = criteria.iter().map(|(operator, value)| inner(operator, value));
        return Ok(Test::Element(Element::Itself(tests.collect::<Answer<_>>()?)));
    }
    let mut members = Vec::new();
    for (key, criterion) in criteria {
        if !is_part(key) || key.starts_with('$') {
            return refuse(format!(
                "Operator '$elemMatch' on '{}' cannot ask for member '{key}'",
                asked.name
            ));
        }
        let operators = match criterion {
            Value::Object(operators) if operators.keys().any(|key| key.starts_with('$')) => {
                operators.clone()
            }
            value => Map::from_iter([("$eq".to_owned(), value.clone())]),
        };
        for (operator, value) in &operators {
            members.push((key.clone(), inner(operator, value)?));
        }
    }
    Ok(Test::Element(Element::Members(members)))
}

fn check_status(value: &Value) -> Answer<()> {
    let known = value.as_str().is_some_and(|word| word.parse::<Status>().is_ok());
    if known {
        return Ok(());
    }
    let wrong = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut valid: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
    valid.sort_unstable();
    refuse(format!("Invalid status value '{wrong}'; valid values: {}", listed(valid)))
}

/// A time with its offset, one without (UTC is meant) or a date (its midnight).
fn time(asked: &Asked<'_>, text: &str) -> Answer<Scalar> {
    let civil = || TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    let at = text.parse::<Timestamp>().ok().or_else(civil);
    match at {
        Some(at) => Ok(Scalar::Number(at.as_microsecond().into())),
        None => refuse(format!(
            "Filter field '{}' takes a time such as 2026-01-31T12:00:00Z, 2026-01-31T12:00:00+02:00 \
             (in a URL the + is %2B) or 2026-01-31, got {}",
            asked.name,
            json!(text)
        )),
    }
}
