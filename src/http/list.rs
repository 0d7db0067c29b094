//! Lists: which page is asked for in which order, and the envelope of the answer.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde_json::{Map, Value, json};

use super::auth::Visible;
use super::error::{Answer, ApiError};
use crate::catalog::Violation;
use crate::catalog::shape::alternatives;
use crate::records::filter::{self, Condition};
use crate::records::{Cursor, Listed, Page, Select, Sort, SortKey};

/// What a list allows.
pub(super) struct Rules {
    /// Items of a page when nobody says otherwise.
    pub page_size: u32,
    /// Items of a page at most.
    pub max_page_size: u32,
    /// How a number below 1 is refused.
    pub too_small: TooSmall,
    /// The keys that it can be sorted by; empty: any word is taken, and unknown ones ignored.
    pub sort: &'static [&'static str],
    /// How many pages a list without items has.
    pub pages_of_nothing: u64,
}

/// The two spellings of the same refusal.
pub(super) enum TooSmall {
    /// `greater_than` 0.
    GreaterThan,
    /// `greater_than_equal` 1.
    AtLeast,
}

/// A query string, in its order, and the workspaces that an answer may be about.
pub(super) struct Pairs {
    pairs: Vec<(String, String)>,
    visible: Option<Condition>,
}

/// What a list request asks for.
pub(super) struct Asked {
    pub page: Page,
    pub sort: Sort,
    after: Option<Cursor>,
    sort_word: String,
    pages_of_nothing: u64,
    visible: Option<Condition>,
}

impl<S: Send + Sync> FromRequestParts<S> for Pairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let pairs = Query::from_request_parts(parts, state).await;
        let Query(pairs) = pairs.map_err(|error| ApiError::bad_request(error.body_text()))?;
        let visible = parts.extensions.get::<Visible>().map(|Visible(workspaces)| {
            Condition::one_of(&filter::WORKSPACE, workspaces.iter().map(String::as_str))
        });
        Ok(Self { pairs, visible })
    }
}

impl Pairs {
    /// A query of these pairs.
    #[cfg(test)]
    pub(super) fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self { pairs: pairs.iter().map(owned).collect(), visible: None }
    }

    /// The pairs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The last value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The same query with a value for a key that has none.
    pub(super) fn or(mut self, key: &str, value: &str) -> Self {
        if self.get(key).is_none() {
            self.pairs.push((key.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same query without a key.
    pub(super) fn without(mut self, key: &str) -> Self {
        self.pairs.retain(|(name, _)| name != key);
        self
    }

    /// A whole number within bounds; what is wrong is added to `found`.
    pub(super) fn number(
        &self,
        key: &str,
        most: u32,
        too_small: &TooSmall,
        found: &mut Vec<Violation>,
    ) -> Option<u32> {
        let text = self.get(key)?;
        let loc = ["query".into(), key.into()];
        let input = json!(text);
        let entry = match text.trim().parse::<i64>() {
            Err(_) => {
                let msg = "Input should be a valid integer, unable to parse string as an integer";
                Violation::new("int_parsing", &loc, msg, &input)
            }
            Ok(number) if number < 1 => match too_small {
                TooSmall::GreaterThan => {
                    Violation::new("greater_than", &loc, "Input should be greater than 0", &input)
                        .with(json!({"gt": 0}))
                }
                TooSmall::AtLeast => {
                    let msg = "Input should be greater than or equal to 1";
                    Violation::new("greater_than_equal", &loc, msg, &input).with(json!({"ge": 1}))
                }
            },
            Ok(number) => match u32::try_from(number) {
                Ok(number) if number <= most => return Some(number),
                _ => {
                    let msg = format!("Input should be less than or equal to {most}");
                    Violation::new("less_than_equal", &loc, msg, &input).with(json!({"le": most}))
                }
            },
        };
        found.push(entry);
        None
    }

    /// Reads page, page size, order and cursor.
    pub(super) fn asked(&self, rules: &Rules) -> Answer<Asked> {
        let mut found = Vec::new();
        let page = self.number("page", u32::MAX, &rules.too_small, &mut found).unwrap_or(1);
        let size = self.number("page_size", rules.max_page_size, &rules.too_small, &mut found);
        let sort_word = self.get("sort").unwrap_or("-created_at").to_owned();
        let sort = sort(&sort_word, rules.sort, &mut found);
        if !found.is_empty() {
            return Err(ApiError::invalid(found));
        }
        let after = self.get("page_cursor").map(|word| cursor(word, sort)).transpose()?;
        if after.is_some() && page != 1 {
            let text = "page_cursor cannot be combined with page: it says by itself where to go on";
            return Err(ApiError::bad_request(text));
        }
        let page = Page { page, page_size: size.unwrap_or(rules.page_size) };
        let (visible, pages_of_nothing) = (self.visible.clone(), rules.pages_of_nothing);
        Ok(Asked { page, sort, after, sort_word, pages_of_nothing, visible })
    }
}

impl Asked {
    /// What records are asked for: whatever the condition, none that the caller may not see.
    pub(super) fn select(&self, condition: Option<Condition>) -> Select {
        let condition = match self.visible.clone() {
            Some(visible) => Some(visible.and(condition)),
            None => condition,
        };
        Select { page: self.page, sort: self.sort, after: self.after.clone(), condition }
    }

    /// The envelope of a page.
    pub(super) fn envelope<T>(
        &self,
        listed: Listed<T>,
        show: impl FnMut(T) -> Value,
    ) -> Map<String, Value> {
        let data: Vec<_> = listed.items.into_iter().map(show).collect();
        let total_pages = match listed.total.div_ceil(u64::from(self.page.page_size)) {
            0 => self.pages_of_nothing,
            pages => pages,
        };
        let mut pagination = json!({
            "page": self.page.page,
            "page_size": self.page.page_size,
            "current_page_size": data.len(),
            "total_pages": total_pages,
            "total_results": listed.total,
        });
        if let Some(next) = listed.next {
            pagination["next_cursor"] = json!(next.encode());
        }
        Map::from_iter([
            ("data".to_owned(), Value::Array(data)),
            ("pagination".to_owned(), pagination),
            ("sort".to_owned(), json!(self.sort_word)),
        ])
    }
}

/// Reads an order; what is wrong with it is added to `found`.
fn sort(word: &str, allowed: &'static [&'static str], found: &mut Vec<Violation>) -> Sort {
    let is_allowed = |sort: &Sort| match allowed {
        // Only jobs have a source, and their lists say what they can be sorted by.
        [] => sort.key != SortKey::Source,
        _ => allowed.contains(&sort.key.word()),
    };
    if let Some(sort) = Sort::read(word).filter(is_allowed) {
        return sort;
    }
    if !allowed.is_empty() {
        let words: Vec<_> =
            allowed.iter().flat_map(|key| [(*key).to_owned(), format!("-{key}")]).collect();
        let expected = alternatives(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let loc = ["query".into(), "sort".into()];
        let msg = format!("Input should be {expected}");
        let entry = Violation::new("enum", &loc, msg, &json!(word));
        found.push(entry.with(json!({"expected": expected})));
    }
    Sort::NEWEST_FIRST
}

/// Reads a cursor, which belongs to the order that it was made in.
fn cursor(word: &str, sort: Sort) -> Answer<Cursor> {
    let Some(cursor) = Cursor::decode(word) else {
        let text = "Invalid page cursor; use next_cursor of the page before, or leave it out";
        return Err(ApiError::bad_request(text));
    };
    if cursor.sort() != sort {
        return Err(ApiError::bad_request(format!(
            "This page cursor belongs to sort={}, the request has sort={sort}; use the same order \
             for all pages",
            cursor.sort()
        )));
    }
    Ok(cursor)
}

/// Stands for all workspaces, or those of them that a caller may see, where a list is asked for.
pub(super) const ALL_WORKSPACES: &str = "-";

/// The workspace that a word names.
pub(super) fn scope(workspace: &str) -> Option<&str> {
    (workspace != ALL_WORKSPACES).then_some(workspace)
}

/// Leaves out the keys whose value is null.
pub(super) fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
