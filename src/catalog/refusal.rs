//! Why a job is not made: one list of reasons, and the text that each shows, whether the
//! request came over HTTP or as a fact.

use serde_json::Value;

use super::shape::Violation;
use crate::auth::{Caller, Role};
use crate::files;
use crate::records;

/// Why a request is refused, or could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is malformed.
    #[error("{}", list(.0))]
    Invalid(Vec<Violation>),
    /// Something that it names does not exist or does not fit.
    #[error("Failed to transform {SOURCE} job input to output: {0}")]
    Transform(String),
    /// What it asks for cannot be run.
    #[error("Failed to compile {SOURCE} job spec: {0}")]
    Compile(String),
    /// It is refused in words of its own.
    #[error("{0}")]
    Unprocessable(String),
    /// A part of it is too large.
    #[error("{0}")]
    TooLarge(String),
    /// It is made in a place that cannot exist.
    #[error("{0}")]
    NotFound(String),
    /// It refers to something that its caller may not use.
    #[error("{0}")]
    Forbidden(String),
    /// It stands against what exists.
    #[error("{0}")]
    Conflict(String),
    /// Records or store did not answer; nothing is wrong with the request as far as is known.
    #[error("{0}")]
    Unavailable(String),
}

/// Where execute jobs come from.
pub(crate) const SOURCE: &str = "nemo-agents-plugin-execute";

fn list(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("; ")
}

impl From<Vec<Violation>> for Refusal {
    fn from(violations: Vec<Violation>) -> Self {
        Self::Invalid(violations)
    }
}

impl From<records::Error> for Refusal {
    fn from(error: records::Error) -> Self {
        match error {
            records::Error::Text(text) => Self::Unprocessable(text),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<files::Error> for Refusal {
    fn from(error: files::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Refuses a reference to something in a workspace where the caller lacks a role. Nothing is looked
/// up before: whether there is such a thing, or such a workspace, is not told.
pub(crate) fn may_refer(
    caller: &Caller,
    role: Role,
    workspace: &str,
    what: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    let needs = caller.needs(role, workspace);
    needs.map_err(|lacking| Refusal::Forbidden(format!("{} cannot be used: {lacking}", what())))
}

/// What is wrong with one request, gathered so that one answer names all of it.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    violations: Vec<Violation>,
    transform: Vec<String>,
    compile: Vec<String>,
}

impl Gathered {
    /// Keeps why something failed, if that is of a kind that can stand beside others.
    pub(crate) fn take<T>(&mut self, done: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
        match done {
            Ok(done) => return Ok(Some(done)),
            Err(Refusal::Invalid(violations)) => self.violations.extend(violations),
            Err(Refusal::Transform(reason)) => self.transform.push(reason),
            Err(Refusal::Compile(reason)) => self.compile.push(reason),
            Err(other) => return Err(other),
        }
        Ok(None)
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.violations.is_empty() && self.transform.is_empty() && self.compile.is_empty()
    }

    /// The answer: the reference's text where only one thing is wrong.
    pub(crate) fn into_refusal(mut self) -> Refusal {
        if self.violations.is_empty() {
            return match self.transform.as_slice() {
                [] => Refusal::Compile(self.compile.join(" ")),
                reasons => Refusal::Transform([reasons, &self.compile].concat().join(" ")),
            };
        }
        let loc = ["body".into(), "spec".into()];
        let reasons = self.transform.iter().chain(&self.compile);
        let others = reasons.map(|reason| Violation::rule(&loc, reason, &Value::Null));
        self.violations.extend(others);
        Refusal::Invalid(self.violations)
    }
}
