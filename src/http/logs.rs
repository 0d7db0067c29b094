//! `GET …/jobs/{name}/logs`: pages of a job's log.
//!
//! A cursor is a place in the log and stays good for ever: the log only grows at its end. Lines
//! carry numbers, and `after` asks for those that came after one: whoever follows a log needs no
//! more than the last number that was seen, over restarts of the server and broken connections.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};
use streams::id::Attempt;
use streams::log::{LogLine, LogStream};

use super::Api;
use super::error::{Answer, ApiError};
use super::filter::Collection;
use super::job_view::STEP;
use super::jobs;
use super::list::{Pairs, TooSmall};
use super::time;
use crate::logs::{Error, Window};
use crate::records::Job;

const MOST_LINES: u32 = 10_000;
const PAGE_LINES: u64 = 100;

/// Far more than a cursor of ours has. What base58 takes to read grows with the square.
const MOST_CURSOR_BYTES: usize = 1024;

/// A place in the log, as callers hold it.
#[derive(Debug, PartialEq, Eq)]
enum Cursor {
    /// The page that begins here.
    From(u64),
    /// The page that ends before here.
    Before(u64),
    /// The same, reached from a tail of this view.
    Tailed(u64, String),
}

/// Pages through the log.
pub(super) async fn list(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    collection: Collection,
    query: Pairs,
) -> Answer<Json<Value>> {
    let job = jobs::find(&api, &workspace, &name).await?;
    let view = View::of(&job, collection, &query);
    let mut found = Vec::new();
    let limit = query.number("limit", MOST_LINES, &TooSmall::GreaterThan, &mut found);
    let tail = query.number("tail", MOST_LINES, &TooSmall::GreaterThan, &mut found);
    let after = query.number("after", u32::MAX, &TooSmall::GreaterThan, &mut found);
    if !found.is_empty() {
        return Err(ApiError::invalid(found));
    }
    let cursor = query.get("page_cursor").filter(|cursor| !cursor.is_empty());
    let limit_lines = limit.map_or(PAGE_LINES, u64::from);
    if after.is_some() && (tail.is_some() || cursor.is_some()) {
        return Err(ApiError::bad_request(
            "after cannot be combined with tail or page_cursor; pass the returned next_page as \
             page_cursor without after.",
        ));
    }
    let (window, chain) = match (tail, cursor) {
        (Some(_), _) if limit.is_some() => {
            return Err(ApiError::bad_request(
                "tail cannot be combined with limit; tail controls the returned log window size.",
            ));
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request(
                "tail cannot be combined with page_cursor; pass the returned prev_page as \
                 page_cursor without tail.",
            ));
        }
        (Some(tail), None) => (Window::Tail(tail.into()), Chain::Tail),
        (None, None) => {
            let limit = limit_lines;
            let window = match after {
                None => Window::From { first: 0, limit },
                Some(number) => Window::Above { number: number.into(), limit },
            };
            (window, Chain::Pages)
        }
        (None, Some(cursor)) => at(cursor, limit_lines, &view)?,
    };
    if view.is_empty {
        return Ok(Json(json!({"data": [], "total": 0, "next_page": null, "prev_page": null})));
    }
    let found = api.logs.read(&job.workspace, job.id, window).await.map_err(failed)?;
    let end = found.first + found.lines.len() as u64;
    let next = (chain == Chain::Pages && end < found.total).then_some(Cursor::From(end));
    let prev = (found.first > 0).then(|| match chain {
        Chain::Pages => Cursor::Before(found.first),
        Chain::Tail => Cursor::Tailed(found.first, view.key.clone()),
    });
    let data: Vec<_> = found.lines.iter().map(|line| show(line, &job)).collect();
    Ok(Json(json!({
        "data": data,
        "total": found.total,
        "next_page": next.map(|cursor| cursor.encode()),
        "prev_page": prev.map(|cursor| cursor.encode()),
    })))
}

/// Whether pages follow each other forward, or backward from the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Pages,
    Tail,
}

fn at(cursor: &str, limit: u64, view: &View) -> Answer<(Window, Chain)> {
    match Cursor::decode(cursor) {
        None => Err(ApiError::unprocessable("Invalid page cursor")),
        Some(Cursor::From(first)) => Ok((Window::From { first, limit }, Chain::Pages)),
        Some(Cursor::Before(end)) => Ok((Window::Before { end, limit }, Chain::Pages)),
        Some(Cursor::Tailed(end, of)) if of == view.key => {
            Ok((Window::Before { end, limit }, Chain::Tail))
        }
        Some(Cursor::Tailed(..)) => {
            Err(ApiError::unprocessable("page_cursor does not match the current log filters."))
        }
    }
}

/// What of a job's log is looked at.
struct View {
    /// The same for the same job and the same filters.
    key: String,
    /// Whether the filters leave nothing: all lines are of one step and shown with one task.
    is_empty: bool,
}

impl View {
    /// The execute collection has no filters, and ignores them.
    fn of(job: &Job, collection: Collection, query: &Pairs) -> Self {
        let ours = [("step_id", STEP), ("task_id", &task(job)), ("attempt_id", &job.attempt_id)];
        let mut view = Self { key: job.id.to_string(), is_empty: false };
        for (key, own) in ours {
            if collection == Collection::Generic
                && let Some(asked) = query.get(key)
            {
                view.key.push_str(&format!("&{key}={asked}"));
                view.is_empty |= asked != own;
            }
        }
        view
    }
}

/// The task that lines are shown with: the first, also for those of a later start. Archived lines
/// do not say which start they are of, and a line must not change when it is archived.
fn task(job: &Job) -> String {
    job.id.task_name(Attempt::FIRST)
}

fn show(line: &LogLine, job: &Job) -> Value {
    let (stream, prefix) = match line.stream {
        LogStream::Stdout => ("stdout", ""),
        LogStream::Stderr => ("stderr", "[stderr] "),
        LogStream::Platform => ("platform", ""),
    };
    json!({
        "timestamp": time(line.at),
        "job": job.name,
        "job_step": STEP,
        "job_task": task(job),
        "message": format!("{prefix}{}", line.text),
        "n": line.n,
        "stream": stream,
    })
}

fn failed(error: Error) -> ApiError {
    match error {
        Error::Corrupt { .. } => {
            tracing::error!(%error, "a log could not be read");
            let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
            ApiError::new(status, "Failed to query job logs")
        }
        Error::Broker(error) => error.into(),
        Error::Store(error) => error.into(),
    }
}

impl Cursor {
    fn encode(&self) -> String {
        let text = match self {
            Self::From(first) => format!("f:{first}"),
            Self::Before(end) => format!("b:{end}"),
            Self::Tailed(end, view) => format!("t:{end}:{view}"),
        };
        bs58::encode(text).into_string()
    }

    fn decode(word: &str) -> Option<Self> {
        if word.len() > MOST_CURSOR_BYTES {
            return None;
        }
        let text = String::from_utf8(bs58::decode(word).into_vec().ok()?).ok()?;
        let (kind, rest) = text.split_once(':')?;
        match (kind, rest.split_once(':')) {
            ("f", None) => Some(Self::From(rest.parse().ok()?)),
            ("b", None) => Some(Self::Before(rest.parse().ok()?)),
            ("t", Some((end, view))) => Some(Self::Tailed(end.parse().ok()?, view.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
