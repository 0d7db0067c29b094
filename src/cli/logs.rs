//! `errand jobs get-logs`: a job's log as a document, page by page behind cursors.

use clap::Args;
use serde_json::{Value, json};

use super::Session;
use super::pages::MORE;
use super::render::Column;
use crate::client::{Error, segment};

const COLUMNS: &[Column] = &[("TIMESTAMP", "/timestamp"), ("MESSAGE", "/message")];

#[derive(Debug, Args)]
pub(super) struct GetLogs {
    /// Its name or id
    #[arg(value_parser = super::name)]
    job: String,
    /// Lines on a page, 1 to 10000
    #[arg(long, value_name = "N", conflicts_with = "tail")]
    limit: Option<u32>,
    /// The page behind this cursor, a next_page or prev_page of another
    #[arg(long, value_name = "CURSOR", conflicts_with = "tail")]
    page_cursor: Option<String>,
    /// The last lines instead, 1 to 10000
    #[arg(long, value_name = "N", conflicts_with = "all_pages")]
    tail: Option<u32>,
    /// Fetch every page
    #[arg(long)]
    all_pages: bool,
}

impl GetLogs {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<()> {
        let path = format!("{}/jobs/{}/logs", session.base("jobs", None), segment(&self.job));
        let mut query = Vec::new();
        query.extend(self.limit.map(|lines| ("limit", lines.to_string())));
        query.extend(self.tail.map(|lines| ("tail", lines.to_string())));
        let mut answer = page(session, &path, &query, self.page_cursor).await?;
        if self.all_pages {
            let mut lines = Vec::new();
            loop {
                if let Value::Array(page) = answer["data"].take() {
                    lines.extend(page);
                }
                let Some(next) = next(&answer) else { break };
                answer = page(session, &path, &query, Some(next)).await?;
            }
            let total = lines.len();
            answer = json!({"data": lines, "total": total, "next_page": null, "prev_page": null});
        }
        session.out.list(&answer, COLUMNS);
        if next(&answer).is_some() {
            session.out.note(MORE);
        }
        Ok(())
    }
}

async fn page(
    session: &Session,
    path: &str,
    query: &[(&str, String)],
    cursor: Option<String>,
) -> Result<Value, Error> {
    let cursor = cursor.map(|cursor| ("page_cursor", cursor));
    let query: Vec<_> = query.iter().cloned().chain(cursor).collect();
    session.client.query(path, &query).await
}

fn next(answer: &Value) -> Option<String> {
    answer["next_page"].as_str().map(str::to_owned)
}
