//! Lists that are longer than a page: which page is asked for, and all of them as one.

use std::collections::HashSet;

use clap::Args;
use serde_json::{Value, json};

use super::Session;
use super::render::Column;

/// Entries of a page; as many as every list allows.
const PAGE_SIZE: u32 = 100;

/// What is said when there is more than what is shown.
pub(super) const MORE: &str =
    "More pages of results are available! Use --all-pages to fetch all results.";

/// Which part of a list.
#[derive(Debug, Args)]
pub(super) struct Pages {
    /// Which page
    #[arg(long, value_name = "N", default_value_t = 1)]
    page: u32,
    /// Entries on a page
    #[arg(long, value_name = "N", default_value_t = PAGE_SIZE)]
    page_size: u32,
    /// Fetch every page
    #[arg(long, conflicts_with = "page")]
    all_pages: bool,
}

/// Which part of a list, in which order.
#[derive(Debug, Args)]
pub(super) struct Sorted {
    #[command(flatten)]
    pages: Pages,
    /// The order: a field, such as created_at; with - before it, the other way round
    #[arg(long, value_name = "FIELD", default_value = "-created_at", allow_hyphen_values = true)]
    sort: String,
}

impl Sorted {
    /// Gets and prints the part that is asked for.
    pub(super) async fn show(
        self,
        session: &Session,
        path: &str,
        filter: Option<String>,
        columns: &[Column],
    ) -> anyhow::Result<()> {
        let mut query = vec![("sort", self.sort)];
        query.extend(filter.map(|filter| ("filter", filter)));
        self.pages.show(session, path, query, columns).await
    }
}

impl Pages {
    /// Gets and prints the part that is asked for.
    pub(super) async fn show(
        self,
        session: &Session,
        path: &str,
        mut query: Vec<(&str, String)>,
        columns: &[Column],
    ) -> anyhow::Result<()> {
        query.push(("page_size", self.page_size.to_string()));
        if self.all_pages {
            let whole = whole(session, path, &query).await?;
            session.out.list(&whole, columns);
            return Ok(());
        }
        query.push(("page", self.page.to_string()));
        let answer = session.client.query(path, &query).await?;
        session.out.list(&answer, columns);
        if next(&answer, "page").is_some() {
            let shown = answer["data"].as_array().map_or(0, Vec::len);
            let total = &answer["pagination"]["total_results"];
            session.out.note(&format!("{shown} of {total} shown. {MORE}"));
        }
        Ok(())
    }
}

/// All pages as one.
async fn whole(session: &Session, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
    let mut entries = Vec::new();
    let mut seen = HashSet::new();
    let mut at = ("page", "1".to_owned());
    loop {
        let asked_by = at.0;
        let query: Vec<_> = query.iter().cloned().chain([at]).collect();
        let mut answer = session.client.query(path, &query).await?;
        let next = next(&answer, asked_by);
        if let Value::Array(page) = answer["data"].take() {
            // What is made meanwhile moves the pages: the last of one comes again on the next.
            entries.extend(page.into_iter().filter(|entry| seen.insert(identity(entry))));
        }
        match next {
            Some(next) => at = next,
            None => {
                let total = entries.len();
                answer["data"] = Value::Array(entries);
                answer["pagination"] = json!({
                    "page": 1, "page_size": total, "current_page_size": total,
                    "total_pages": 1, "total_results": total,
                });
                return Ok(answer);
            }
        }
    }
}

/// Where the page after this one is: behind a cursor, from a server that has them, or by number.
/// Cursors end with the last one; the numbers beside them mean nothing.
fn next(answer: &Value, asked_by: &str) -> Option<(&'static str, String)> {
    let pagination = &answer["pagination"];
    let cursors = [&pagination["next_cursor"], &answer["next_cursor"]];
    if let Some(cursor) = cursors.into_iter().find_map(Value::as_str) {
        return Some(("page_cursor", cursor.to_owned()));
    }
    let (page, pages) = (pagination["page"].as_u64()?, pagination["total_pages"].as_u64()?);
    (asked_by == "page" && page < pages).then(|| ("page", (page + 1).to_string()))
}

/// What no other entry of the list shares.
fn identity(entry: &Value) -> String {
    match entry["id"].as_str() {
        Some(id) => id.to_owned(),
        None => format!("{}/{}", entry["workspace"], entry["name"]),
    }
}

#[cfg(test)]
mod tests;
