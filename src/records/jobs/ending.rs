//! What owners ask of a job and what is noted of one that is swept: held, cancelled, deleted,
//! purged.

use std::collections::HashSet;

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::AnyConnection;
use streams::id::JobId;

use super::life::Life;
use super::{Job, Jobs, read, whole};
use crate::records::Result;
use crate::records::statement::{assembled, sql};

impl Jobs<'_> {
    /// Notes that somebody asked for a job's end, and returns the job. One that has ended stays
    /// as it is.
    pub async fn request_cancel(&self, job: JobId) -> Result<Job> {
        self.0.write(job, |job, db| ask(*job, "cancel_requested = 1", db).boxed()).await
    }

    /// Notes that somebody keeps a job from being started, and returns the job.
    pub async fn hold(&self, job: JobId) -> Result<Job> {
        self.0.write(job, |job, db| ask(*job, "hold = 'held'", db).boxed()).await
    }

    /// Notes that somebody who kept a job from being started lets it go, and returns the job.
    pub async fn release(&self, job: JobId) -> Result<Job> {
        self.0.write(job, |job, db| ask(*job, "hold = 'released'", db).boxed()).await
    }

    /// Hides a job for good and keeps its id from coming back: the first step of deleting it.
    pub async fn tombstone(&self, job: JobId) -> Result<()> {
        self.0.write(job, |job, db| tombstone(*job, db).boxed()).await
    }

    /// Removes what a hidden job's record holds, its tombstone aside: the last step.
    pub async fn forget(&self, job: JobId) -> Result<()> {
        self.0
            .write(job, |job, db| {
                let gone = sql("DELETE FROM jobs WHERE id = $1 AND deleted_at IS NOT NULL");
                async move { gone.text(&job.to_string()).run(db).await.map(drop) }.boxed()
            })
            .await
    }

    /// Jobs that were deleted since and are wholly forgotten.
    pub async fn deleted_since(&self, since: Timestamp) -> Result<HashSet<JobId>> {
        let found = sql("SELECT job FROM tombstones WHERE deleted_at >= $1 AND NOT EXISTS
             (SELECT 1 FROM jobs WHERE jobs.id = tombstones.job)")
        .time(since)
        .all(self.0.reads())
        .await?;
        found.iter().map(|row| row.word("job")).collect()
    }

    /// Notes that a job's messages are gone from the streams; says whether there is such a job.
    pub async fn set_purged(&self, job: JobId) -> Result<bool> {
        self.0
            .write(job, |job, db| {
                let purged = sql("UPDATE jobs SET purged = 1 WHERE id = $1 AND deleted_at IS NULL");
                async move { Ok(purged.text(&job.to_string()).run(db).await? > 0) }.boxed()
            })
            .await
    }
}

/// Notes what somebody asked for, unless the job has ended.
pub(in crate::records) async fn ask(
    job: JobId,
    wish: &'static str,
    db: &mut AnyConnection,
) -> Result<Job> {
    let id = job.to_string();
    let asked = assembled(format!(
        "UPDATE jobs SET {wish}
         WHERE id = $1 AND deleted_at IS NULL AND ended_at IS NULL RETURNING {}",
        Life::COLUMNS
    ));
    if let Some(row) = asked.text(&id).one(&mut *db).await? {
        // The status is derived anew from what is known and the wish together.
        Life::read(&row)?.store().run(&mut *db).await?;
    }
    whole("id = $1 AND deleted_at IS NULL").text(&id).row_as(db, read).await
}

async fn tombstone(job: JobId, db: &mut AnyConnection) -> Result<()> {
    let id = job.to_string();
    let hidden = sql("UPDATE jobs SET deleted_at = COALESCE(deleted_at, $2) WHERE id = $1
                      RETURNING workspace, deleted_at")
    .text(&id)
    .time(Timestamp::now())
    .row(&mut *db)
    .await?;
    sql("INSERT INTO tombstones (job, workspace, deleted_at) VALUES ($1, $2, $3)
         ON CONFLICT DO NOTHING")
    .text(&id)
    .text(&hidden.text("workspace")?)
    .time(hidden.time("deleted_at")?)
    .run(db)
    .await
    .map(drop)
}
