//! `GET …/jobs/{name}/events`: what becomes of a job, as server-sent events.
//!
//! An event is a status message as the stream holds it, and its id the message's sequence there.
//! Whoever comes back with the last id goes on behind it, over restarts of everything, as far as
//! the stream still holds what came next. The messages of a finished job leave it after a while;
//! the record says then how it ended. Nothing is held for a slow reader: the next message is looked
//! up when the one before has gone out.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use streams::broker::Stored;
use streams::id::JobId;
use streams::status::StatusMessage;
use streams::subject;
use streams::topology::StreamName;

use super::Api;
use super::error::{Answer, ApiError};
use super::jobs;
use crate::auth::Caller;
use crate::status;

/// What comes when nothing else does, so that nobody between takes the connection to be dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often the stream is looked at without a hint that there is something new.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The same while the queue or the records do not answer.
const LOOK_AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// A hint may come before its message is stored: how often and when it is looked for again.
const LOOKS_AFTER_HINT: u32 = 20;
const LOOK_AFTER_HINT: Duration = Duration::from_millis(100);

/// The id of the event that the record made. There is none after it.
const END: &str = "end";

/// The last event that a reader has seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    UpTo(u64),
    End,
}

/// Somebody who reads the events of a job.
struct Reader {
    api: Api,
    caller: Caller,
    job: JobId,
    subject: String,
    hints: BoxStream<'static, ()>,
    /// The sequence from which on nothing was sent.
    from: u64,
    /// Whether the last event was sent.
    is_over: bool,
    looks_after_hint: u32,
}

/// Follows a job: what is known of it first, then what becomes of it, until it has ended.
pub(super) async fn stream(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Answer {
    let seen = Seen::of(&headers)?;
    let job = jobs::find(&api, &workspace, &name).await?;
    let subject = subject::status(&job.workspace, job.id);
    // What is published from now on gives a hint, what was published before is found.
    let hints = api.broker.hints(&subject).await?;
    let last = api.broker.last(StreamName::Status, &subject).await?;
    let from = match (seen, &last) {
        (Seen::UpTo(seen), Some(last)) if seen <= last.sequence => seen + 1,
        // The number is of a stream that is no more.
        _ => 0,
    };
    let ends = |last: &Stored| read(last, job.id).is_some_and(|(_, ended)| ended);
    if seen == Seen::End || last.is_some_and(|last| last.sequence < from && ends(&last)) {
        // Browsers come back until they are told so.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let job = job.id;
    let reader =
        Reader { api, caller, job, subject, hints, from, is_over: false, looks_after_hint: 0 };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // nginx would hold events back until it has a page of them.
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

impl Seen {
    fn of(headers: &HeaderMap) -> Answer<Self> {
        let Some(id) = headers.get("last-event-id") else { return Ok(Self::Nothing) };
        let id = String::from_utf8_lossy(id.as_bytes());
        match (id.trim(), id.trim().parse()) {
            ("", _) => Ok(Self::Nothing),
            (END, _) => Ok(Self::End),
            (_, Ok(sequence)) if sequence < u64::MAX => Ok(Self::UpTo(sequence)),
            _ => Err(ApiError::bad_request(format!(
                "Last-Event-ID is '{id}', expected the id of an event of this job, or no such \
                 header to begin with the first"
            ))),
        }
    }
}

impl Reader {
    /// The next event; none when there will be no more, or the server stops.
    async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let stop = self.api.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            event = self.found() => event,
        }
    }

    /// Looks until there is one. Trouble is waited out.
    async fn found(&mut self) -> Option<Event> {
        loop {
            let pause = match self.look().await {
                Ok(Some(event)) => return Some(event),
                Ok(None) if self.is_over => return None,
                Ok(None) if self.looks_after_hint > 0 => {
                    self.looks_after_hint -= 1;
                    LOOK_AFTER_HINT
                }
                Ok(None) => LOOK_EVERY,
                // The error was logged where it was made.
                Err(_) => LOOK_AFTER_TROUBLE,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = hint(&mut self.hints) => self.looks_after_hint = LOOKS_AFTER_HINT,
            }
        }
    }

    /// What comes next, if it is there.
    async fn look(&mut self) -> Answer<Option<Event>> {
        let Api { broker, records, gate, .. } = &self.api;
        if !gate.still_knows(&self.caller).await? {
            self.is_over = true;
            return Ok(None);
        }
        while let Some(stored) = broker.next(StreamName::Status, &self.subject, self.from).await? {
            self.from = stored.sequence + 1;
            if let Some((message, ended)) = read(&stored, self.job) {
                self.is_over = ended;
                return Ok(Some(event(&stored.sequence.to_string(), &message)));
            }
        }
        let Some(status) = records.jobs().status(self.job).await? else {
            // It was deleted.
            self.is_over = true;
            return Ok(None);
        };
        let is_swept =
            status.is_terminal() && broker.last(StreamName::Status, &self.subject).await?.is_none();
        if !is_swept {
            return Ok(None);
        }
        let Some(job) = records.jobs().by_id(self.job).await? else { return Ok(None) };
        self.is_over = true;
        let message = serde_json::to_value(status::known(&job)).map_err(ApiError::internal)?;
        Ok(Some(event(END, &message)))
    }
}

/// Waits for one; all that are there count as one.
async fn hint(hints: &mut BoxStream<'static, ()>) {
    if hints.next().await.is_none() {
        // Without hints it is looked now and then.
        return std::future::pending().await;
    }
    while let Some(Some(())) = hints.next().now_or_never() {}
}

/// A message of a job, and whether it is the last. What is none says nothing.
fn read(stored: &Stored, job: JobId) -> Option<(Value, bool)> {
    let value: Value = serde_json::from_slice(&stored.payload).ok()?;
    let message = StatusMessage::deserialize(&value).ok().filter(|message| message.job == job)?;
    Some((value, message.status.is_terminal()))
}

fn event(id: &str, message: &Value) -> Event {
    Event::default().id(id).event("status").data(message.to_string())
}
