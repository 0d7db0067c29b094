//! Cursors: the place behind the last record of a page. Callers see an opaque word.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Sort, SortKey};
use crate::records::filter::clause::Clause;

/// A place in a list of one order, between two records. The time is kept to the microsecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    sort: Sort,
    mark: Mark,
    id: String,
}

/// What the record's sort key is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Time(i64),
    Text(String),
}

impl Cursor {
    pub(in crate::records) const fn at_time(sort: Sort, at: i64, id: String) -> Self {
        Self { sort, mark: Mark::Time(at), id }
    }

    pub(in crate::records) const fn at_text(sort: Sort, text: String, id: String) -> Self {
        Self { sort, mark: Mark::Text(text), id }
    }

    /// The order that it is a place in.
    pub const fn sort(&self) -> Sort {
        self.sort
    }

    /// The word for it.
    pub fn encode(&self) -> String {
        let mark = match &self.mark {
            Mark::Time(at) => json!(at),
            Mark::Text(text) => json!(text),
        };
        let parts = json!([self.sort.to_string(), mark, self.id]);
        BASE64_URL_SAFE_NO_PAD.encode(parts.to_string())
    }

    /// What a word stands for; none when it is no cursor.
    pub fn decode(word: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(word).ok()?;
        let (sort, mark, id): (String, Value, String) = serde_json::from_slice(&bytes).ok()?;
        let sort = Sort::read(&sort)?;
        let mark = match (sort.key, mark) {
            (SortKey::CreatedAt | SortKey::UpdatedAt, Value::Number(at)) => {
                Mark::Time(at.as_i64()?)
            }
            (SortKey::Name | SortKey::Source, Value::String(text)) => Mark::Text(text),
            _ => return None,
        };
        let nul = |text: &str| text.contains('\0');
        let readable = !nul(&id) && !matches!(&mark, Mark::Text(text) if nul(text));
        readable.then_some(Self { sort, mark, id })
    }

    /// The condition for what stands behind it.
    pub(in crate::records) fn behind(&self, clause: &mut Clause) -> String {
        let mark = match &self.mark {
            Mark::Time(at) => clause.int(*at),
            Mark::Text(text) => clause.text(text),
        };
        let (column, sign) = (self.sort.key.word(), self.sort.direction.sign());
        format!("({column}, id) {sign} ({mark}, {})", clause.text(&self.id))
    }
}

#[cfg(test)]
mod tests;
