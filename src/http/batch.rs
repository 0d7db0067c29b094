//! `POST …/jobs/execute:batch`: a job for each line of the body, and an outcome for each, in
//! order, while the lines still come. Memory is the same for any number of lines: whoever does
//! not read the outcomes is read no further.
//!
//! A line has a key of its own, made of the batch's and its number: the same lines sent again,
//! whatever became of the answers, are the same jobs.

mod lines;

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use streams::fact::BatchLine;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::Api;
use super::body::{self, Limit};
use super::error::{Answer, ApiError, or_conflict};
use super::idempotency::{self, IdempotencyKey};
use super::list::{Pairs, TooSmall};
use super::{auth, range, workspaces};
use crate::auth::Caller;
use crate::catalog::{Violation, refs};
use crate::records::{Batch, Job, NewBatch, NewJob, Refusal, SEAL_AFTER_SECONDS};
use lines::{Line, Lines};

/// In this header an answer says the name of its batch.
const GROUP_HEADER: &str = "x-errand-group";

/// Lines that are judged at once.
const AT_ONCE: usize = 16;

/// How long a line waits for room in the queue, and how long between two looks.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);

/// The longest name of a batch's key: the number of a line follows it.
const LONGEST_KEY: usize = 240;

/// Takes lines.
pub(super) async fn submit(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    Extension(Limit(most)): Extension<Limit>,
    Extension(caller): Extension<Caller>,
    key: IdempotencyKey,
    query: Pairs,
    request: Request,
) -> Answer {
    let mut found = Vec::new();
    let mut number = |key: &str| query.number(key, u32::MAX >> 1, &TooSmall::AtLeast, &mut found);
    let (expected, first) = (number("lines"), number("first").unwrap_or(1));
    let seal_after_seconds = number("seal_after").unwrap_or(SEAL_AFTER_SECONDS);
    let name = query.get("group").map_or_else(generated, str::to_owned);
    if !refs::is_name(&name) {
        let text = format!("group must match {}", refs::NAME_PATTERN);
        found.push(Violation::rule(&["query".into(), "group".into()], &text, &json!(name)));
    }
    let key = key.text().map_or_else(|| name.clone(), str::to_owned);
    if key.len() > LONGEST_KEY {
        let text = format!("the key of a batch must be at most {LONGEST_KEY} characters");
        let loc = ["header".into(), "Idempotency-Key".into()];
        found.push(Violation::rule(&loc, &text, &json!(key)));
    }
    if !found.is_empty() {
        return Err(ApiError::invalid(found));
    }
    workspaces::check(&api, &workspace).await?;
    let new = NewBatch { name: name.clone(), workspace, key, expected, seal_after_seconds };
    let batch = or_conflict(api.records.batches().open(new).await, || {
        format!(
            "Batch '{name}' was begun under another Idempotency-Key. Go on with that key, or \
             choose another group."
        )
    })?;
    let group = range::value(&batch.name)?;
    let lines = Lines::of(request.into_body(), first, most);
    let outcomes = outcomes(Intake { api, caller, batch, most }, lines);
    let said = outcomes.map(|outcome| Ok::<_, Infallible>(format!("{outcome}\n")));
    let kind = range::value("application/x-ndjson")?;
    let headers = [(header::CONTENT_TYPE, kind)].into_iter().collect::<HeaderMap>();
    let mut response = (StatusCode::OK, headers, Body::from_stream(said)).into_response();
    response.headers_mut().insert(GROUP_HEADER, group);
    Ok(response)
}

fn generated() -> String {
    format!("batch-{}", uuid::Uuid::now_v7().simple())
}

/// What comes of the lines, in their order.
fn outcomes(intake: Intake, lines: Lines) -> impl Stream<Item = Value> {
    // However many lines are judged at once, no more bytes are than one line may have.
    let room = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS.min(intake.most)));
    let intake = Arc::new(intake);
    let reader = intake.clone();
    stream::unfold(lines, move |mut lines| {
        let (intake, room) = (reader.clone(), room.clone());
        async move {
            let before = lines.last;
            match lines.next().await {
                Ok(Some(line)) => {
                    intake.note_blank(before + 1..line.number).await;
                    let permit = take_room(room, &line).await;
                    Some(((line, permit), lines))
                }
                Ok(None) => {
                    intake.note_blank(before + 1..lines.number + 1).await;
                    intake.end(lines.last).await;
                    None
                }
                Err(error) => {
                    let batch = &intake.batch.name;
                    tracing::warn!(batch, line = lines.last, %error, "a batch broke off");
                    None
                }
            }
        }
    })
    .map(move |(line, permit)| {
        let intake = intake.clone();
        async move {
            let outcome = intake.outcome(line).await;
            drop(permit);
            outcome
        }
    })
    .buffered(AT_ONCE)
}

async fn take_room(room: Arc<Semaphore>, line: &Line) -> Option<OwnedSemaphorePermit> {
    let bytes = u32::try_from(line.bytes.as_ref()?.len()).unwrap_or(u32::MAX);
    room.acquire_many_owned(bytes).await.ok()
}

/// Where lines become jobs.
struct Intake {
    api: Api,
    caller: Caller,
    batch: Batch,
    most: usize,
}

impl Intake {
    async fn outcome(&self, Line { number, bytes }: Line) -> Value {
        let judged = match bytes {
            Some(bytes) => self.submit(number, &bytes).await,
            None => Err(body::too_large(Some(Limit(self.most)))),
        };
        let error = match judged {
            Ok(job) => return json!({"line": number, "status": 201, "job": short(&job)}),
            Err(error) => error,
        };
        let (status, detail) = error.into_parts();
        self.note_refusal(number, status, &detail).await;
        json!({"line": number, "status": status.as_u16(), "detail": detail})
    }

    /// Makes the job of a line, once there is room for it.
    async fn submit(&self, number: u32, bytes: &[u8]) -> Answer<Job> {
        let Self { api, caller, batch, .. } = self;
        // Lines may come for hours.
        if !api.gate.still_knows(caller).await? {
            return Err(auth::unknown());
        }
        let mut request = body::Body::parse(bytes)?.0;
        let key = match request.as_object_mut().and_then(|it| it.shift_remove("idempotency_key")) {
            None | Some(Value::Null) => format!("{}/{number}", batch.key),
            Some(Value::String(key)) => key,
            Some(other) => {
                let loc = ["body".into(), "idempotency_key".into()];
                let entry = Violation::rule(&loc, "idempotency_key must be a text", &other);
                return Err(ApiError::invalid(vec![entry]));
            }
        };
        let key = IdempotencyKey::named(&key)?;
        let place = BatchLine { group: batch.name.clone(), line: number };
        let until = Instant::now() + PATIENCE;
        loop {
            let prepare = async {
                let new = api.catalog.prepare(caller, &batch.workspace, &request).await?;
                Ok(NewJob { batch: Some(place.clone()), ..new })
            };
            let made =
                idempotency::make(api, &batch.workspace, key.clone(), &request, prepare).await;
            match made {
                Err(error) if error.is_unavailable() && Instant::now() < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(job) if job.batch.as_ref() != Some(&place) => {
                    return Err(ApiError::conflict(format!(
                        "The key of this line was given to job '{}', which is not of line \
                         {number} of batch '{}'. Send it once, or give it another \
                         idempotency_key.",
                        job.name, batch.name
                    )));
                }
                made => return made,
            }
        }
    }

    async fn note_refusal(&self, line: u32, status: StatusCode, detail: &Value) {
        let detail = detail.to_string();
        let refusal = Refusal { line, http_status: status.as_u16(), detail };
        if let Err(error) = self.api.records.batches().refuse(&self.batch, refusal).await {
            let batch = &self.batch.name;
            tracing::warn!(batch, line, %error, "a refused line is not noted");
        }
    }

    /// Blank lines have come, too, although nothing comes of them.
    async fn note_blank(&self, lines: Range<u32>) {
        if lines.is_empty() {
            return;
        }
        let noted = self.api.records.batches().skip(&self.batch, lines.clone()).await;
        if let Err(error) = noted {
            let batch = &self.batch.name;
            tracing::warn!(batch, ?lines, %error, "blank lines are not noted");
        }
    }

    async fn end(&self, last: u32) {
        if let Err(error) = self.api.records.batches().ended(&self.batch, last).await {
            let batch = &self.batch.name;
            tracing::warn!(batch, last, %error, "the end of a batch is not noted");
        }
    }
}

/// A job in as few words as a caller needs to find it again.
fn short(job: &Job) -> Value {
    json!({"id": job.id.http(), "name": job.name, "status": job.status})
}
