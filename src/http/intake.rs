//! Whether there is room for another submission. A queue that is full must be known before a job
//! is recorded; it is asked at most a few times a second, and what is admitted meanwhile counts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use streams::broker::{self, Broker, Room};
use streams::topology::StreamName;

use super::error::{Answer, ApiError};
use crate::submission;

/// How long an answer of the queue counts.
const FRESH: Duration = Duration::from_millis(250);

/// How long it may take to answer; whoever submits waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a submission takes up, as a rule.
const SUBMISSION: u64 = 1024;

/// Kept for larger ones, and for what others submit between our look and our publication: a part
/// of the whole, and at most so many bytes.
const RESERVE: (u64, u64) = (8, 1024 * 1024);

/// What is known of the room, and since when. No room at all stands for one without a limit, and
/// for one that the queue did not tell of: the record is made then, and published later.
#[derive(Debug, Default)]
pub(super) struct Intake(Mutex<Option<(Instant, Option<Room>)>>);

impl Intake {
    /// Refuses a submission for which there is no room, and counts it otherwise.
    pub(super) async fn check(&self, broker: &dyn Broker) -> Answer<()> {
        if !self.is_fresh() {
            let look = tokio::time::timeout(PATIENCE, broker.room(StreamName::Intake)).await;
            self.set(look.ok().and_then(Result::ok).flatten());
        }
        if self.take() {
            return Ok(());
        }
        let detail = "Too many submissions wait. Running jobs go on; try again later.";
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, detail))
    }

    /// Learns from a publication that failed.
    pub(super) fn note(&self, error: &submission::Error) {
        if matches!(error, submission::Error::Broker(broker::Error::Full(_))) {
            self.set(Some(Room { free: 0, of: 0 }));
        }
    }

    fn is_fresh(&self) -> bool {
        self.known().is_some_and(|(at, _)| at.elapsed() < FRESH)
    }

    fn take(&self) -> bool {
        let mut known = self.known();
        let Some((_, Some(room))) = known.as_mut() else { return true };
        let reserve = (room.of / RESERVE.0).min(RESERVE.1);
        let Some(free) = room.free.checked_sub(SUBMISSION) else { return false };
        room.free = free;
        free >= reserve
    }

    fn set(&self, room: Option<Room>) {
        *self.known() = Some((Instant::now(), room));
    }

    fn known(&self) -> MutexGuard<'_, Option<(Instant, Option<Room>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
