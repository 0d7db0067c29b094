//! What owners ask of a job and what sweepers do: held, cancelled, deleted, swept.

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::AnyConnection;
use streams::id::JobId;
use streams::phase::Phase;

use super::life::Life;
use super::{Job, Jobs, read, whole};
use crate::records::Result;
use crate::records::statement::{Row, Statement, assembled, sql};

/// A finished job, as much of it as the sweeper needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The job.
    pub id: JobId,
    /// Its workspace.
    pub workspace: String,
    /// When it was finished.
    pub ended_at: Timestamp,
}

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

    /// Hidden jobs whose record is still there: deletions that are not through.
    pub async fn tombstoned(&self, limit: u32) -> Result<Vec<Job>> {
        let found = whole("deleted_at IS NOT NULL ORDER BY deleted_at LIMIT $1").int(limit);
        self.jobs(found).await
    }

    /// Jobs of which no fact was ever seen, older than a time: their submission may not have
    /// been published.
    pub async fn unpublished(&self, before: Timestamp, limit: u32) -> Result<Vec<Job>> {
        let found = whole(
            "seen = 0 AND deleted_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2",
        );
        self.jobs(found.time(before).int(limit)).await
    }

    /// Jobs that are to be cancelled and have not ended, oldest first: those after a job, or the
    /// first of all.
    pub async fn cancelling(&self, after: Option<&Job>, limit: u32) -> Result<Vec<Job>> {
        let found = whole(
            "cancel_requested = 1 AND ended_at IS NULL AND deleted_at IS NULL
             AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3",
        );
        let at = after.map_or(Timestamp::MIN, |job| job.created_at);
        let id = after.map(|job| job.id.to_string()).unwrap_or_default();
        self.jobs(found.time(at).text(&id).int(limit)).await
    }

    /// Jobs whose agent should have been started before a time and was not seen to be, in the order
    /// in which it should: those after a job, or the first of all. What no worker has resolved yet
    /// cannot be ended.
    pub async fn overdue(
        &self,
        time: Timestamp,
        after: Option<&Job>,
        limit: u32,
    ) -> Result<Vec<Job>> {
        let found = whole(
            "start_by < $1 AND ended_at IS NULL AND deleted_at IS NULL AND running IS NULL
             AND phase IN ($2, $3) AND (start_by, id) > ($4, $5) ORDER BY start_by, id LIMIT $6",
        );
        let limits = after.and_then(|job| job.snapshot.as_ref()?.queue_limit);
        let id = after.map(|job| job.id.to_string()).unwrap_or_default();
        let found = found
            .time(time)
            .texts([Phase::Resolved.token(), Phase::Staged.token()])
            .time(limits.map_or(Timestamp::MIN, |limit| limit.at))
            .text(&id)
            .int(limit);
        self.jobs(found).await
    }

    /// Jobs that were finished before a time and whose messages are still in the streams.
    pub async fn finished_before(&self, time: Timestamp, limit: u32) -> Result<Vec<Finished>> {
        let found = finished("AND ended_at < $1 ORDER BY ended_at LIMIT $2");
        self.finished(found.time(time).int(limit)).await
    }

    /// The same for those beyond the newest `keep` of them.
    pub async fn finished_beyond(&self, keep: u32, limit: u32) -> Result<Vec<Finished>> {
        let found = finished("ORDER BY ended_at DESC LIMIT $2 OFFSET $1");
        self.finished(found.int(keep).int(limit)).await
    }

    /// Notes that a job's messages are gone from the streams.
    pub async fn set_purged(&self, job: JobId) -> Result<()> {
        self.0
            .write(job, |job, db| {
                let purged = sql("UPDATE jobs SET purged = 1 WHERE id = $1").text(&job.to_string());
                async move { purged.run(db).await.map(drop) }.boxed()
            })
            .await
    }

    async fn jobs(&self, found: Statement) -> Result<Vec<Job>> {
        found.all(self.0.reads()).await?.iter().map(read).collect()
    }

    async fn finished(&self, found: Statement) -> Result<Vec<Finished>> {
        let read = |row: &Row| {
            Ok(Finished {
                id: row.word("id")?,
                workspace: row.text("workspace")?,
                ended_at: row.time("ended_at")?,
            })
        };
        found.all(self.0.reads()).await?.iter().map(read).collect()
    }
}

fn finished(rest: &str) -> Statement {
    assembled(format!(
        "SELECT id, workspace, ended_at FROM jobs
         WHERE purged = 0 AND ended_at IS NOT NULL AND deleted_at IS NULL {rest}"
    ))
}

/// Notes what somebody asked for, unless the job has ended.
async fn ask(job: JobId, wish: &'static str, db: &mut AnyConnection) -> Result<Job> {
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
