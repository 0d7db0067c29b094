//! Shapes: what a piece of JSON may look like, as tables, and the one reader of all of them.
//!
//! Reading checks, fills defaults in and puts the fields in the table's order, so that what is
//! stored does not depend on how it was sent. Failures are [`Violation`]s in the words of the
//! reference's validation entries. Which tables there are is the business of others.

pub(crate) mod amount;
mod depth;
mod reader;
mod violation;

use serde_json::{Map, Value};

pub(crate) use depth::is_deeper_than;
pub(crate) use reader::{alternatives, read, read_known, too_deep};
pub(crate) use violation::pointer_step;
pub use violation::{Loc, Violation};

/// What one value may be.
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// Text with a rule of its own, which may also write it in its canonical form.
    Checked(fn(&str) -> Result<String, String>),
    /// Text that a regular expression describes; `matches` decides.
    Pattern { pattern: &'static str, matches: fn(&str) -> bool },
    /// Text of a length.
    Short { most: usize },
    /// One of these words.
    Words(&'static [&'static str]),
    /// True or false, also spelled as text.
    Bool,
    /// A number, also spelled as text.
    Number(Range),
    /// A number that is spelled as one.
    StrictNumber(Range),
    /// A whole number, also spelled `1024.0`.
    Integer { least: u64, most: u64 },
    /// Any JSON.
    Json,
    /// Any object.
    Dict,
    /// An object whose values share a shape.
    Map(&'static Self),
    /// A list whose items share a shape.
    List(&'static Self),
    /// An object of known fields.
    Object(&'static Table),
    /// Text or an object: a reference, or the thing itself.
    TextOr { text: &'static Self, object: &'static Table },
}

/// Bounds of a number; always finite.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    /// It must be greater than this.
    pub above: Option<f64>,
    /// It must be at least this.
    pub least: Option<f64>,
    /// It must be at most this.
    pub most: Option<f64>,
}

/// An object of known fields.
pub(crate) struct Table {
    /// The fields, in the order in which they are stored.
    pub fields: &'static [Field],
    /// What becomes of a key that is none of them.
    pub unknown: Unknown,
    /// A rule across the fields, asked once each of them is well.
    pub rule: fn(&Map<String, Value>) -> Result<(), String>,
}

/// What becomes of a key that the table does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It is refused by name.
    Refused,
    /// It is left out.
    Dropped,
}

/// A field of a table.
pub(crate) struct Field {
    /// Its key.
    pub name: &'static str,
    /// What it may be.
    pub shape: Shape,
    /// What its absence means.
    pub absent: Absent,
}

/// What the absence of a field means. For every field but a required one, null is absence.
pub(crate) enum Absent {
    /// It is an error.
    Refused,
    /// It stays absent.
    Dropped,
    /// It is stored as null.
    Null,
    /// It is this text.
    Text(&'static str),
    /// It is this number.
    Number(f64),
    /// It is this flag.
    Bool(bool),
    /// It is `[]`.
    List,
    /// It is `{}`, filled with the defaults of its own fields if it has any.
    Object,
}

/// Every finite number.
pub(crate) const FINITE: Range = Range { above: None, least: None, most: None };

/// Every finite number above zero.
pub(crate) const POSITIVE: Range = Range { above: Some(0.0), least: None, most: None };

/// A row of a table.
pub(crate) const fn field(name: &'static str, shape: Shape, absent: Absent) -> Field {
    Field { name, shape, absent }
}

/// A table that refuses unknown keys and has no rule across its fields.
pub(crate) const fn table(fields: &'static [Field]) -> Table {
    Table { fields, unknown: Unknown::Refused, rule: no_rule }
}

/// The rule of a table that has none.
pub(crate) fn no_rule(_: &Map<String, Value>) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests;
