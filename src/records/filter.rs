//! Filters: which records of a list are wanted, as a tree that knows neither a query string nor a
//! database. The HTTP API makes one, [`clause`] says it in SQL, [`columns`] holds what can be
//! asked of each list.
//!
//! A field that is missing and one that is null are the same. What a test says of it:
//!
//! | test | value is there | missing or null |
//! | --- | --- | --- |
//! | `Missing` | no | **yes** |
//! | `OneOf` (`$eq`, `$in`), `Same` | whether it is one of them | no, even of an empty list |
//! | `NoneOf` (`$nin`) | whether it is none of them; yes of an empty list | **no** |
//! | `Ordered`, `Like`, `StartsWith`, `EndsWith`, `HasKey`, `Element` | whether it is so | no |
//!
//! A value of another type than the test's is never equal to it, never before or after it, and
//! holds nothing. `Not` turns yes into no and no into yes, so `Not(OneOf)` is not `NoneOf`: it
//! holds of what is missing. Whole numbers equal their fractions (60 = 60.0). `Like` takes A–Z for
//! a–z and every other character for itself, on both databases alike.

pub(super) mod clause;
mod columns;

use serde_json::{Number, Value};

pub use columns::{
    AGENTS, Column, FILESETS, JOBS, Kind, NAME, NAMED, SOURCE, STATUS, TYPED_JOBS, WORKSPACE,
    WORKSPACES,
};

/// What must hold of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Each of these.
    All(Vec<Condition>),
    /// At least one of these.
    Any(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
    /// This of that field.
    Test(Field, Test),
}

/// A column of a list, or a place in a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub(super) column: &'static Column,
    pub(super) path: Vec<String>,
}

/// What can be asked of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// It is missing or null.
    Missing,
    /// It is one of these.
    OneOf(Vec<Scalar>),
    /// It is there and none of these.
    NoneOf(Vec<Scalar>),
    /// It is this list or object.
    Same(Value),
    /// It stands so to this text or number.
    Ordered(Order, Scalar),
    /// The text is within it, A–Z and a–z alike.
    Like(String),
    /// It begins with the text.
    StartsWith(String),
    /// It ends with the text.
    EndsWith(String),
    /// It is an object with this key.
    HasKey(String),
    /// It is a list, and one element passes all of these.
    Element(Element),
}

/// What is asked of an element of a list. None of the tests asks for an element again.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// Of the element itself, which is no list and no object.
    Itself(Vec<Test>),
    /// Of these members of an element that is an object.
    Members(Vec<(String, Test)>),
}

/// A value that can be compared. Times are microseconds, ids of jobs are UUIDs.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A text.
    Text(String),
    /// A number.
    Number(Number),
    /// True or false.
    Flag(bool),
}

/// How two values stand to one another. Texts are compared by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `<`
    Before,
    /// `<=`
    UpTo,
    /// `>`
    After,
    /// `>=`
    From,
}

/// Why a name is none of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoField {
    /// There is no such column.
    #[error("there is no such field")]
    Unknown,
    /// A part of a path cannot be asked for.
    #[error(
        "part '{0}' of the path cannot be asked for: a part is not empty and holds no quote, \
         backslash or control character"
    )]
    Part(String),
    /// A path goes deeper than any document that is asked about.
    #[error("its path has more than {MOST_PARTS} parts")]
    Deep,
}

/// Parts of a path at most. PostgreSQL takes a step, and a bound value, for each.
const MOST_PARTS: usize = 32;

impl Field {
    /// The field of a name among the columns of a list; `document.path.to.it` is a place in a
    /// document. `data.` before a document is what answers put there, and means nothing.
    pub fn find(columns: &'static [Column], name: &str) -> Result<Self, NoField> {
        let find = |name: &str| columns.iter().find(|column| column.name == name);
        if let Some(column) = find(name) {
            let path = match column.kind {
                Kind::Document => vec![name.to_owned()],
                _ => Vec::new(),
            };
            return Ok(Self { column, path });
        }
        let inner = name.strip_prefix("data.").unwrap_or(name);
        if let Some(column) = find(inner).filter(|column| column.is_in_a_document()) {
            return Ok(Self { column, path: Vec::new() });
        }
        let root = inner.split('.').next().unwrap_or_default();
        let column = find(root).filter(|column| column.kind == Kind::Document);
        let column = column.ok_or(NoField::Unknown)?;
        let path: Vec<String> = inner.split('.').map(str::to_owned).collect();
        if path.len() > MOST_PARTS {
            return Err(NoField::Deep);
        }
        match path.iter().find(|part| !is_part(part)) {
            Some(part) => Err(NoField::Part(part.clone())),
            None => Ok(Self { column, path }),
        }
    }

    /// What kind of values it has.
    pub const fn kind(&self) -> Kind {
        self.column.kind
    }

    /// Whether it stands in a document, or is a column that was taken out of one.
    pub fn is_in_a_document(&self) -> bool {
        self.column.is_in_a_document()
    }
}

/// Whether a key of a document can be asked for. SQLite knows no way to write the others.
pub fn is_part(key: &str) -> bool {
    !key.is_empty() && !key.contains(|it: char| matches!(it, '"' | '\\') || it.is_ascii_control())
}

impl Condition {
    /// The text of a column is one of these.
    pub fn one_of<'t>(column: &'static Column, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts = texts.into_iter().map(|text| Scalar::Text(text.to_owned())).collect();
        Self::Test(Field { column, path: Vec::new() }, Test::OneOf(texts))
    }

    /// Both of them, where both are given.
    pub fn and(self, other: Option<Self>) -> Self {
        match other {
            None => self,
            Some(other) => Self::All(vec![self, other]),
        }
    }

    /// The documents that it asks about. No list has more than one of a record.
    pub(super) fn document(&self) -> Option<&'static Column> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().find_map(Self::document),
            Self::Not(part) => part.document(),
            Self::Test(field, _) => {
                Some(field.column).filter(|column| column.kind == Kind::Document)
            }
        }
    }
}

impl Test {
    /// How many tests it is, with those of elements.
    pub fn weight(&self) -> usize {
        match self {
            Self::Element(Element::Itself(tests)) => tests.len(),
            Self::Element(Element::Members(members)) => members.len(),
            _ => 1,
        }
    }
}
