//! Filters of step lists: `filter[job]`, `filter[status]`, `filter[source]` and
//! `filter[task_cleanup_pending]`, or the same keys in a JSON object. Other lists have another
//! grammar, which is in `filter`.

use serde_json::{Map, Value, json};
use streams::outcome::Status;

use super::error::{Answer, ApiError};
use super::list::Pairs;
use super::steps::STATUSES;
use crate::records::filter::{Condition, NAME, SOURCE, STATUS};

/// Which steps a list is about. What is not set does not narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StepFilter {
    /// Those of the job of this name.
    pub job: Option<String>,
    /// Those of jobs that this made.
    pub source: Option<String>,
    /// Those with one of these statuses; an empty list matches none.
    pub statuses: Option<Vec<Status>>,
}

/// What a query wants, and how it is echoed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StepQuery {
    pub filter: StepFilter,
    pub echo: Map<String, Value>,
}

impl StepFilter {
    /// What must hold of the jobs: each has one step.
    pub(super) fn condition(&self) -> Option<Condition> {
        let job = self.job.iter().map(|job| Condition::one_of(&NAME, [job.as_str()]));
        let source = self.source.iter().map(|source| Condition::one_of(&SOURCE, [source.as_str()]));
        let status = self.statuses.iter().map(|statuses| {
            Condition::one_of(&STATUS, statuses.iter().map(|status| status.as_str()))
        });
        let all: Vec<_> = job.chain(source).chain(status).collect();
        (!all.is_empty()).then_some(Condition::All(all))
    }
}

impl StepQuery {
    /// Reads the filter of a query.
    pub(super) fn read(query: &Pairs) -> Answer<Self> {
        let conditions = match query.get("filter") {
            Some(text) => from_json(text)?,
            None => from_brackets(query),
        };
        let mut read = Self::default();
        for (key, values) in conditions {
            read.take(&key, values)?;
        }
        Ok(read)
    }

    /// Narrows the list to the job that the path names.
    pub(super) fn of_job(&mut self, name: &str) {
        if self.filter.job.as_deref().is_some_and(|other| other != name) {
            self.filter.statuses = Some(Vec::new());
        }
        self.filter.job = Some(name.to_owned());
        self.echo.insert("job".to_owned(), json!(name));
    }

    fn take(&mut self, key: &str, values: Vec<String>) -> Answer<()> {
        let echo = match key {
            "status" => {
                let statuses = values.iter().map(|word| status(word)).collect::<Answer<_>>()?;
                self.narrow(statuses);
                json!(values)
            }
            "job" => {
                self.filter.job = Some(one(key, &values)?.to_owned());
                json!(self.filter.job)
            }
            "source" => {
                self.filter.source = Some(one(key, &values)?.to_owned());
                json!(self.filter.source)
            }
            "task_cleanup_pending" => match one(key, &values)? {
                // A step that ended badly says that its tasks have followed, the others nothing.
                "false" => {
                    self.narrow(vec![Status::Cancelled, Status::Error]);
                    json!(false)
                }
                "true" => {
                    self.narrow(Vec::new());
                    json!(true)
                }
                _ => return Err(invalid(key, "Input should be a valid boolean.")),
            },
            _ => return Err(invalid(key, "Extra inputs are not permitted.")),
        };
        self.echo.insert(key.to_owned(), echo);
        Ok(())
    }

    /// Several conditions on the status must all hold.
    fn narrow(&mut self, statuses: Vec<Status>) {
        let known = self.filter.statuses.take();
        self.filter.statuses = Some(match known {
            None => statuses,
            Some(known) => known.into_iter().filter(|known| statuses.contains(known)).collect(),
        });
    }
}

type Conditions = Vec<(String, Vec<String>)>;

/// A repeated key and a comma both make a list.
fn from_brackets(query: &Pairs) -> Conditions {
    let mut found = Conditions::new();
    for (key, value) in query.iter() {
        let Some(inner) = key.strip_prefix("filter[") else { continue };
        let key = inner.split(']').next().unwrap_or_default();
        let values = value.split(',').map(str::to_owned);
        match found.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => known.extend(values),
            None => found.push((key.to_owned(), values.collect())),
        }
    }
    found
}

fn from_json(text: &str) -> Answer<Conditions> {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
        return Err(ApiError::bad_request(format!("Invalid JSON in filter parameter: {text}")));
    };
    fields.into_iter().map(|(key, value)| Ok((key.clone(), values(&key, &value)?))).collect()
}

/// A value, a list of them, or either behind `$eq` or `$in`.
fn values(key: &str, value: &Value) -> Answer<Vec<String>> {
    match value {
        Value::Array(items) => Ok(items.iter().map(plain).collect()),
        Value::Object(operators) => {
            match (operators.get("$in").or(operators.get("$eq")), operators.len()) {
                (Some(operand), 1) if !operand.is_object() => values(key, operand),
                _ => Err(invalid(key, "Steps are filtered with $eq and $in only.")),
            }
        }
        value => Ok(vec![plain(value)]),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn one<'v>(key: &str, values: &'v [String]) -> Answer<&'v str> {
    match values {
        [value] => Ok(value),
        _ => Err(invalid(key, "Input should be one value.")),
    }
}

fn status(word: &str) -> Answer<Status> {
    word.parse().map_err(|_| {
        let expected = STATUSES.join(", ");
        let text = format!("'{word}' is no status. Expected one or more of: {expected}.");
        invalid("status", &text)
    })
}

fn invalid(key: &str, text: &str) -> ApiError {
    ApiError::unprocessable(format!("The request contains invalid values. filter.{key}: {text}"))
}

#[cfg(test)]
mod tests;
