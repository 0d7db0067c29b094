//! Batches: how far each is, and which jobs its lines became.

use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::outcome::Status;

use super::Api;
use super::error::{Answer, ApiError, or_not_found};
use super::filter;
use super::list::{Pairs, Rules, TooSmall};
use super::{time, workspaces};
use crate::records::filter::NAMED;
use crate::records::{Batch, Member, Refusal, Tally};

const RULES: Rules = Rules {
    page_size: 20,
    max_page_size: 100,
    too_small: TooSmall::AtLeast,
    sort: &["created_at", "updated_at", "name"],
    pages_of_nothing: 0,
};

/// Lines that can be asked for at once.
const MOST_LINES: usize = 200;

/// Refused lines that are shown with a batch.
const MOST_REFUSALS: u32 = 20;

/// Lists them, uncounted.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    query: Pairs,
) -> Answer<Json<Value>> {
    let asked = query.asked(&RULES)?;
    let wanted = filter::plain(&NAMED).read(&query)?;
    let workspace = workspaces::listed(&api, &workspace).await?;
    let listed = api.records.batches().list(workspace, &asked.select(wanted.condition)).await?;
    Ok(Json(Value::Object(asked.envelope(listed, |batch| show(&batch).into()))))
}

/// One, counted.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, group)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let batch = find(&api, &workspace, &group).await?;
    let tally = api.records.batches().tally(&batch).await?;
    let refused = api.records.batches().refusals(&batch, MOST_REFUSALS).await?;
    let mut shown = show(&batch);
    shown.extend(counts(&batch, &tally));
    shown.insert("refusals".to_owned(), refused.iter().map(refusal).collect());
    Ok(Json(Value::Object(shown)))
}

/// The jobs of the lines that are named: `?lines=3,17,20`.
pub(super) async fn jobs(
    State(api): State<Api>,
    Path((workspace, group)): Path<(String, String)>,
    query: Pairs,
) -> Answer<Json<Value>> {
    find(&api, &workspace, &group).await?;
    let words = query.get("lines").unwrap_or_default().split(',').map(str::trim);
    let lines: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
    let lines = lines.filter(|lines| lines.len() <= MOST_LINES).ok_or_else(|| {
        let text = format!("lines takes 1 to {MOST_LINES} numbers of lines: lines=3,17,20");
        ApiError::bad_request(text)
    })?;
    let members = api.records.batches().members(&workspace, &group, &lines).await?;
    Ok(Json(json!({"data": members.iter().map(member).collect::<Vec<_>>()})))
}

async fn find(api: &Api, workspace: &str, group: &str) -> Answer<Batch> {
    or_not_found(api.records.batches().get(workspace, group).await, || {
        format!("Batch '{group}' not found in workspace '{workspace}'.")
    })
}

fn show(batch: &Batch) -> Map<String, Value> {
    let shown = json!({
        "group": batch.name,
        "workspace": batch.workspace,
        "lines": batch.expected,
        "seal_after_seconds": batch.seal_after_seconds,
        "created_at": time(batch.created_at),
        "updated_at": time(batch.updated_at),
    });
    shown.as_object().cloned().unwrap_or_default()
}

/// What became of its lines: each job is in one of `completed`, `failed`, `cancelled`, `running`
/// and `waiting`.
fn counts(batch: &Batch, tally: &Tally) -> Map<String, Value> {
    let (mut places, mut statuses, mut codes) = ([0; 5], Map::new(), Map::new());
    let add = |to: &mut Map<String, Value>, word: &str, count: u64| {
        let before = to.get(word).and_then(Value::as_u64).unwrap_or_default();
        to.insert(word.to_owned(), (before + count).into());
    };
    for ((status, code), count) in &tally.jobs {
        let place = match status.parse() {
            Ok(Status::Completed) => 0,
            Ok(Status::Error) => 1,
            Ok(Status::Cancelled) => 2,
            Ok(Status::Active | Status::Cancelling) => 3,
            _ => 4,
        };
        places[place] += count;
        add(&mut statuses, status, *count);
        if let Some(code) = code {
            add(&mut codes, code, *count);
        }
    }
    let [completed, failed, cancelled, running, waiting] = places;
    let shown = json!({
        "state": tally.progress(batch, Timestamp::now()).as_str(),
        "received": tally.received,
        "jobs": places.iter().sum::<u64>(),
        "completed": completed,
        "failed": failed,
        "cancelled": cancelled,
        "running": running,
        "waiting": waiting,
        "refused": tally.refused,
        "statuses": statuses,
        "codes": codes,
    });
    shown.as_object().cloned().unwrap_or_default()
}

fn member(member: &Member) -> Value {
    json!({
        "line": member.line,
        "id": member.id.http(),
        "name": member.name,
        "status": member.status,
        "code": member.code,
    })
}

fn refusal(refusal: &Refusal) -> Value {
    let detail: Value = serde_json::from_str(&refusal.detail)
        .unwrap_or_else(|_| Value::String(refusal.detail.clone()));
    json!({"line": refusal.line, "status": refusal.http_status, "detail": detail})
}
