//! Lists of records: a page of those that are asked for, and how many there are in all.
//!
//! The page is found in the narrow table, where an index may be all that is read; only then are
//! its records read whole.

use sqlx::AnyPool;

use super::filter::Condition;
use super::filter::clause::{Clause, Dialect};
use super::page::Cursor;
use super::statement::{Read, Row, planned};
use super::{Listed, Result, Select, Sort, SortKey};

/// Matches that are found by what they match and then sorted. More are looked for in the order
/// that is asked for. Databases cannot know which is better: they take an agent's jobs to be as
/// old as all others.
const FEW: u64 = 10_000;

/// What a list is of.
pub(super) struct List<'l> {
    /// The table.
    pub(super) table: &'static str,
    /// The table with the documents of its records.
    pub(super) whole: &'static str,
    /// What is read of each record; at least its id, and what it can be sorted by.
    pub(super) columns: &'static str,
    /// What holds of every record that is listed.
    pub(super) always: Option<&'static str>,
    /// The workspace that it is about; none when it is about all of them.
    pub(super) workspace: Option<&'l str>,
}

impl List<'_> {
    /// The page that is asked for.
    pub(super) async fn select<T>(
        &self,
        reads: &AnyPool,
        asked: &Select,
        read: Read<T>,
    ) -> Result<Listed<T>> {
        let dialect = Dialect::of(reads);
        let mut clause = Clause::new(dialect);
        let mut conditions: Vec<String> = self.always.map(str::to_owned).into_iter().collect();
        if let Some(workspace) = self.workspace {
            conditions.push(format!("workspace = {}", clause.text(workspace)));
        }
        conditions.extend(asked.condition.iter().map(|condition| clause.condition(condition)));
        let document = asked.condition.as_ref().and_then(Condition::document);
        let from = match document {
            Some(document) => dialect.with_document(self.whole, document.sql),
            None => self.table.to_owned(),
        };
        let matching = from_where(&from, &conditions);
        let count = planned(format!("SELECT COUNT(*) AS total FROM {matching}"));
        let total: u64 = clause.fill(count).row(reads).await?.number("total")?;

        conditions.extend(asked.after.as_ref().map(|cursor| cursor.behind(&mut clause)));
        let matching = from_where(&from, &conditions);
        let order = order_by(asked.sort, "");
        // On the way through all records in their order few matches are found late.
        let inner_order = match total <= FEW {
            true => order_by(asked.sort, no_index(asked.sort.key)),
            false => order.clone(),
        };
        // One more than is asked for, to see whether there is more.
        let (size, whole, columns) = (asked.page.page_size as usize, self.whole, self.columns);
        let (limit, offset) = (clause.int(asked.page.limit() + 1), clause.int(asked.offset()));
        let select = planned(format!(
            "SELECT {columns} FROM {whole} WHERE id IN
             (SELECT id FROM {matching} {inner_order} LIMIT {limit} OFFSET {offset}) {order}"
        ));
        let rows = clause.fill(select).all(reads).await?;
        let next = match rows.get(size.wrapping_sub(1)) {
            Some(last) if rows.len() > size => Some(cursor_at(asked.sort, last)?),
            _ => None,
        };
        let items = rows.iter().take(size).map(read).collect::<Result<_>>()?;
        Ok(Listed { items, total, next })
    }
}

fn from_where(from: &str, conditions: &[String]) -> String {
    match conditions {
        [] => from.to_owned(),
        conditions => format!("{from} WHERE {}", conditions.join(" AND ")),
    }
}

/// An order by a column, or by an expression of it.
fn order_by(Sort { key, direction }: Sort, expression: &str) -> String {
    let (column, direction) = (key.word(), direction.word());
    format!("ORDER BY {column}{expression} {direction}, id {direction}")
}

/// What makes an expression of a column that has the same order and no index.
const fn no_index(key: SortKey) -> &'static str {
    match key {
        SortKey::CreatedAt | SortKey::UpdatedAt => " + 0",
        SortKey::Name | SortKey::Source => " || ''",
    }
}

/// Where a list goes on behind a row.
fn cursor_at(sort: Sort, row: &Row) -> Result<Cursor> {
    let column = sort.key.word();
    let id = row.text("id")?;
    Ok(match sort.key {
        SortKey::CreatedAt | SortKey::UpdatedAt => Cursor::at_time(sort, row.int(column)?, id),
        SortKey::Name | SortKey::Source => Cursor::at_text(sort, row.text(column)?, id),
    })
}
