//! Telling somebody of a job's end: an outbox that is a column of the job's own row, so that what is
//! to be told is committed with the job. Who sends, and when again, is `crate::notify`'s affair.

use futures_util::FutureExt;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use streams::id::JobId;

use super::Jobs;
use crate::records::Result;
use crate::records::statement::sql;

/// Tries that are remembered, the newest.
const MOST_TRIES: usize = 20;

/// What came of telling so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// When the next try is due; absent when none is to come.
    #[serde(skip)]
    pub next: Option<Timestamp>,
    /// How it ended; absent while tries are to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<NotificationEnd>,
    /// Tries since somebody asked for it, all together.
    #[serde(default)]
    pub count: u32,
    /// The last of them.
    #[serde(default)]
    pub tries: Vec<Try>,
}

/// How telling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationEnd {
    /// The receiver took it.
    Sent,
    /// No try came to anything.
    GivenUp,
    /// The job's end is none that is to be told.
    NotWanted,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// When.
    pub at: Timestamp,
    /// Why it came to nothing; absent when it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Notification {
    /// Adds a try.
    pub fn tried(&mut self, at: Timestamp, error: Option<String>) {
        self.count += 1;
        self.tries.push(Try { at, error });
        let beyond = self.tries.len().saturating_sub(MOST_TRIES);
        self.tries.drain(..beyond);
    }
}

impl Jobs<'_> {
    /// What came of telling of a job's end.
    pub async fn notification(&self, job: JobId) -> Result<Notification> {
        let found = sql("SELECT notify_at, notification FROM jobs
             WHERE id = $1 AND deleted_at IS NULL");
        let row = found.text(&job.to_string()).row(self.0.reads()).await?;
        let known: Option<Notification> = row.optional_json("notification")?;
        Ok(Notification { next: row.optional_time("notify_at")?, ..known.unwrap_or_default() })
    }

    /// Takes a try that was due at a time; nobody else gets it before `until`. Says whether it was
    /// still to be had.
    pub async fn take_try(&self, job: JobId, due: Timestamp, until: Timestamp) -> Result<bool> {
        self.0
            .write((job, due, until), |(job, due, until), db| {
                let took = sql("UPDATE jobs SET notify_at = $3 WHERE id = $1 AND notify_at = $2")
                    .text(&job.to_string())
                    .time(*due)
                    .time(*until);
                async move { Ok(took.run(db).await? == 1) }.boxed()
            })
            .await
    }

    /// Notes what came of a try that was taken until a time; nothing when somebody asked for
    /// another one meanwhile.
    pub async fn note_try(
        &self,
        job: JobId,
        until: Timestamp,
        notification: Notification,
    ) -> Result<()> {
        self.0
            .write((job, until, notification), |(job, until, notification), db| {
                let noted = sql("UPDATE jobs SET notify_at = $3, notification = $4
                     WHERE id = $1 AND notify_at = $2")
                .text(&job.to_string())
                .time(*until)
                .optional_time(notification.next)
                .json(notification);
                async move { noted.run(db).await.map(drop) }.boxed()
            })
            .await
    }

    /// Begins anew with telling.
    pub async fn tell_again(&self, job: JobId) -> Result<()> {
        let known = self.notification(job).await?;
        let anew = Notification { end: None, count: 0, ..known };
        self.0
            .write((job, anew), |(job, anew), db| {
                let asked = sql("UPDATE jobs SET notify_at = $2, notification = $3
                     WHERE id = $1 AND deleted_at IS NULL")
                .text(&job.to_string())
                .time(Timestamp::now())
                .json(anew);
                asked.touch(db).boxed()
            })
            .await
    }
}
