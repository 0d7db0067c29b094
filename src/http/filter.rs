//! Filters of lists, as callers write them: `filter={"field": {"$in": ["a"]}}` or
//! `filter[field][$in]=a`. Both become one JSON object ([`form`]), and that the tree that records
//! understand ([`reader`], [`operator`]). What is not understood is refused, never ignored.

mod form;
mod operator;
mod reader;

use serde_json::{Value, json};

use super::error::{Answer, ApiError};
use super::list::Pairs;
use crate::records::filter::{self, Column, Condition};
use form::Form;
use reader::Reader;

/// Which jobs a list is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    /// All jobs.
    Generic,
    /// Execute jobs: there is no source to ask for, and a status must be one.
    Typed,
}

/// What a list has to do with filters.
pub(super) struct Filterable {
    /// What can be asked for.
    pub columns: &'static [Column],
    /// What echoes put before a place in a document.
    pub documents: &'static str,
    /// What is asked of the values of status and times.
    pub values: Values,
}

/// What is asked of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// A status that does not exist is one that no record has.
    Any,
    /// A status must exist, and times only have an order.
    Checked,
}

/// Which records are wanted.
#[derive(Debug, PartialEq)]
pub(super) struct Filter {
    /// What must hold of them; none without a filter.
    pub condition: Option<Condition>,
    /// The same in its canonical form, which answers echo; none without a filter.
    pub echo: Option<Value>,
    /// The brackets of the query as an object, which the lists of agents echo; empty without.
    pub brackets: Value,
}

/// All jobs.
pub(super) static JOBS: Filterable =
    Filterable { columns: &filter::JOBS, documents: "data.", values: Values::Any };

/// Execute jobs.
pub(super) static TYPED_JOBS: Filterable =
    Filterable { columns: &filter::TYPED_JOBS, documents: "", values: Values::Checked };

/// A list of other things.
pub(super) const fn plain(columns: &'static [Column]) -> Filterable {
    Filterable { columns, documents: "", values: Values::Any }
}

impl Filterable {
    /// Reads the filter of a query. `filter=` wins over brackets.
    pub(super) fn read(&self, query: &Pairs) -> Answer<Filter> {
        let (form, fields) = match query.get("filter") {
            Some(text) => (Form::Json, form::json(text)?),
            None => (Form::Brackets, form::brackets(query)?),
        };
        if form == Form::Brackets && fields.is_empty() {
            return Ok(Filter { condition: None, echo: None, brackets: json!({}) });
        }
        let brackets = match form {
            Form::Json => json!({}),
            Form::Brackets => Value::Object(fields.clone()),
        };
        let (condition, echo) = Reader::new(self, form).read(fields)?;
        Ok(Filter { condition: Some(condition), echo: Some(echo), brackets })
    }
}

impl Filter {
    /// What the lists of agents and of their like echo: brackets as they came.
    pub(super) fn echo_of_agents(self) -> Value {
        self.echo.filter(|_| self.brackets == json!({})).unwrap_or(self.brackets)
    }
}

fn refuse<T>(text: impl Into<String>) -> Answer<T> {
    Err(ApiError::bad_request(text))
}

/// `['a', 'b']`.
fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("'{word}'")).collect();
    format!("[{}]", words.join(", "))
}

#[cfg(test)]
mod tests;
