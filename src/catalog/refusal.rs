//! Why a job is not made: one list of reasons, and the text that each shows, whether the
//! request came over HTTP or as a fact.

use super::shape::Violation;
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
    /// It is made in a place that cannot exist.
    #[error("{0}")]
    NotFound(String),
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
