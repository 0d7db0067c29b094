//! One thing that is wrong with a request, as the HTTP API lists it.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// A step of the way to a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Loc {
    /// A key of an object.
    Key(String),
    /// A place in a list.
    Index(usize),
}

/// An entry of a validation answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    /// The kind, in pydantic's words.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Where.
    pub loc: Vec<Loc>,
    /// One sentence.
    pub msg: String,
    /// What was sent there.
    pub input: Value,
    /// The values that the sentence is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctx: Option<Value>,
}

impl From<&str> for Loc {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => index.fmt(f),
        }
    }
}

impl Violation {
    /// A violation without context.
    pub(crate) fn new(
        kind: &'static str,
        loc: &[Loc],
        msg: impl Into<String>,
        input: &Value,
    ) -> Self {
        Self { kind, loc: loc.to_vec(), msg: msg.into(), input: input.clone(), ctx: None }
    }

    /// A rule of our own that does not hold.
    pub(crate) fn rule(loc: &[Loc], text: &str, input: &Value) -> Self {
        Self::new("value_error", loc, format!("Value error, {text}"), input)
            .with(json!({"error": {}}))
    }

    /// A required field that is absent from `input`.
    pub(crate) fn missing(loc: &[Loc], input: &Value) -> Self {
        Self::new("missing", loc, "Field required", input)
    }

    /// Adds the context.
    pub(crate) fn with(mut self, ctx: Value) -> Self {
        self.ctx = Some(ctx);
        self
    }

    /// Where, as a dotted path.
    pub(crate) fn path(&self) -> String {
        self.loc.iter().map(Loc::to_string).collect::<Vec<_>>().join(".")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            path if path.is_empty() => f.write_str(&self.msg),
            path => write!(f, "{path}: {}", self.msg),
        }
    }
}

/// A key as a step of a JSON pointer.
pub(crate) fn pointer_step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
