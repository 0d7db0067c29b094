//! A job's log as users page through it: the same lines, by the same numbers, whether they are
//! still in the stream or archived already.
//!
//! Blank lines are left out of this view, so a line's place in it is counted, not computed.
//! What was counted is remembered: batches never change. Nothing here knows HTTP.

mod archive;
mod index;
mod last_output;
mod page;
mod reading;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use streams::broker::{self, Broker};
use streams::id::JobId;
use streams::log::{Lines, LogBatch, LogLine};
use streams::subject;
use streams::topology::StreamName;
use workers::store::{self, Store};

use archive::Counted;
use index::{Index, Place};
pub use last_output::last_output;
use reading::Reading;

/// Jobs whose places are remembered.
const REMEMBERED_JOBS: usize = 256;

/// Reads logs.
pub struct Logs {
    broker: Arc<dyn Broker>,
    store: Store,
    known: Mutex<HashMap<JobId, Arc<tokio::sync::Mutex<Index>>>>,
}

/// Which lines are wanted. Lines are counted from 0, blank ones not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Up to `limit` lines from this one on.
    From {
        /// The first.
        first: u64,
        /// How many at most.
        limit: u64,
    },
    /// Up to `limit` lines right before this one.
    Before {
        /// The line after the last.
        end: u64,
        /// How many at most.
        limit: u64,
    },
    /// The newest lines.
    Tail(u64),
    /// Up to `limit` lines whose numbers are above this one: what came since it was seen.
    Above {
        /// The number that a line carries.
        number: u64,
        /// How many at most.
        limit: u64,
    },
}

/// Some lines, ascending.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The place of the first.
    pub first: u64,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// How many there are in all.
    pub total: u64,
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The queue.
    #[error(transparent)]
    Broker(#[from] broker::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What is stored there is no log.
    #[error("log of job {job}: {reason}")]
    Corrupt {
        /// The job.
        job: JobId,
        /// What is wrong with it.
        reason: String,
    },
}

impl Window {
    /// The places it covers among `total` lines; `above` is the place of the first of
    /// [`Window::Above`].
    fn places(self, total: u64, above: u64) -> (u64, u64) {
        match self {
            Self::Above { limit, .. } => Self::From { first: above, limit }.places(total, above),
            Self::From { first, limit } => {
                (first.min(total), first.saturating_add(limit).min(total))
            }
            Self::Before { end, limit } => {
                let end = end.min(total);
                (end.saturating_sub(limit), end)
            }
            Self::Tail(count) => (total.saturating_sub(count), total),
        }
    }
}

impl Logs {
    /// Logs in this queue and this store.
    pub fn new(broker: Arc<dyn Broker>, store: Store) -> Self {
        Self { broker, store, known: Mutex::default() }
    }

    /// Reads a window: its lines, or as many of them as one answer may have bytes.
    pub async fn read(&self, workspace: &str, job: JobId, window: Window) -> Result<Found, Error> {
        let index = self.index(job);
        let mut index = index.lock().await;
        let reading = Reading { logs: self, workspace, job };
        loop {
            self.catch_up(workspace, job, &mut index).await?;
            // The messages may be removed meanwhile: then the archive has the lines.
            if let Some(found) = reading.window(&index, window).await? {
                return Ok(found);
            }
            *index = Index::default();
        }
    }

    fn index(&self, job: JobId) -> Arc<tokio::sync::Mutex<Index>> {
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.len() >= REMEMBERED_JOBS
            && !known.contains_key(&job)
            && let Some(other) = known.keys().next().copied()
        {
            known.remove(&other);
        }
        known.entry(job).or_default().clone()
    }

    /// Counts the lines that came since.
    async fn catch_up(&self, workspace: &str, job: JobId, index: &mut Index) -> Result<(), Error> {
        if index.is_complete() {
            return Ok(());
        }
        let subject = subject::logs(workspace, job);
        loop {
            let from = index.last_batch().map_or(0, |sequence| sequence + 1);
            let Some(stored) = self.broker.next(StreamName::Logs, &subject, from).await? else {
                break;
            };
            let batch = decode(job, &stored.payload)?;
            let last = (batch.first + batch.count).saturating_sub(1);
            let lines = match batch.blank {
                Some(blank) => batch.count.saturating_sub(blank),
                None => visible(&self.open(job, batch).await?).count() as u64,
            };
            index.add(Place::Batch(stored.sequence), lines, last);
        }
        if index.last_batch().is_none()
            && let Some(frames) = self.frames(workspace, job).await?
        {
            for Counted { frame, lines, last } in frames {
                index.add(Place::Archive(frame), lines, last);
            }
        }
        Ok(())
    }

    async fn open(&self, job: JobId, batch: LogBatch) -> Result<Vec<LogLine>, Error> {
        match batch.lines {
            Lines::Inline(lines) => Ok(lines),
            Lines::Stored(object) => {
                let corrupt = |reason: String| Error::Corrupt { job, reason };
                let bytes = self.store.read(&object).await?;
                let bytes = bytes.ok_or_else(|| corrupt(format!("no object '{}'", object.key)))?;
                let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                let lines = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
                lines.map_err(|error| corrupt(error.to_string()))
            }
        }
    }
}

/// The lines that this view has.
fn visible(lines: &[LogLine]) -> impl Iterator<Item = &LogLine> {
    lines.iter().filter(|line| !line.is_blank())
}

fn decode(job: JobId, payload: &[u8]) -> Result<LogBatch, Error> {
    serde_json::from_slice(payload)
        .map_err(|error| Error::Corrupt { job, reason: error.to_string() })
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
