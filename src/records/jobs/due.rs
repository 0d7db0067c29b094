//! Jobs that something is to be done about, page by page: each kind is a condition, and the time
//! by which its jobs are in order. A page holds as little of each as who does it needs.

use jiff::Timestamp;
use streams::id::JobId;
use streams::outcome::Status;

use super::Jobs;
use crate::records::Result;
use crate::records::statement::{Row, Statement, assembled, places, sql};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// No fact of it was ever seen: its submission may not have been published.
    Publish,
    /// It is to be cancelled and has not ended.
    Cancel,
    /// Its agent must have been started by a time and was not seen to be. What no worker has
    /// resolved yet cannot be ended.
    Start,
    /// It is hidden and its record is still there: its deletion is not through.
    Delete,
    /// It has ended and its messages are still in the streams.
    Purge,
    /// It has ended and somebody is to be told.
    Tell,
}

/// A job that something is to be done about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The job.
    pub id: JobId,
    /// Its workspace.
    pub workspace: String,
    /// The time that its place in the order comes from.
    pub at: Timestamp,
}

impl Duty {
    const fn condition(self) -> &'static str {
        match self {
            Self::Publish => "seen = 0 AND deleted_at IS NULL",
            Self::Cancel => "cancel_requested = 1 AND ended_at IS NULL AND deleted_at IS NULL",
            Self::Start => {
                "start_by IS NOT NULL AND ended_at IS NULL AND deleted_at IS NULL
                 AND running IS NULL AND phase IN ('resolved', 'staged')"
            }
            Self::Delete => "deleted_at IS NOT NULL",
            Self::Tell => "notify_at IS NOT NULL AND ended_at IS NOT NULL AND deleted_at IS NULL",
            Self::Purge => "purged = 0 AND ended_at IS NOT NULL AND deleted_at IS NULL",
        }
    }

    const fn time(self) -> &'static str {
        match self {
            Self::Publish | Self::Cancel => "created_at",
            Self::Start => "start_by",
            Self::Tell => "notify_at",
            Self::Delete => "deleted_at",
            Self::Purge => "ended_at",
        }
    }
}

impl Jobs<'_> {
    /// Jobs whose time was before another, in order: those after a job, or the first of all.
    pub async fn due(
        &self,
        duty: Duty,
        before: Timestamp,
        after: Option<&Due>,
        limit: u32,
    ) -> Result<Vec<Due>> {
        self.due_elsewhere(&[], duty, before, after, limit).await
    }

    /// The same of all workspaces but these.
    pub async fn due_elsewhere(
        &self,
        busy: &[&str],
        duty: Duty,
        before: Timestamp,
        after: Option<&Due>,
        limit: u32,
    ) -> Result<Vec<Due>> {
        let (condition, time) = (duty.condition(), duty.time());
        let elsewhere = match busy.len() {
            0 => String::new(),
            count => format!("AND workspace NOT IN ({})", places(5, count)),
        };
        let found = assembled(format!(
            "SELECT id, workspace, {time} AS due_at FROM jobs
             WHERE {condition} {elsewhere} AND {time} < $1 AND ({time}, id) > ($2, $3)
             ORDER BY {time}, id LIMIT $4"
        ));
        let id = after.map(|due| due.id.to_string()).unwrap_or_default();
        let at = after.map_or(Timestamp::MIN, |due| due.at);
        let found: Statement = found.time(before).time(at).text(&id).int(limit);
        let found = found.texts(busy.iter().copied());
        found.all(self.0.reads()).await?.iter().map(read).collect()
    }

    /// When the newest of those ended of which `keep` that ended later have not left the streams.
    pub async fn ended_beyond(&self, keep: u32) -> Result<Option<Timestamp>> {
        let found = sql("SELECT ended_at FROM jobs
             WHERE purged = 0 AND ended_at IS NOT NULL AND deleted_at IS NULL
             ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET $1");
        let row = found.int(keep).one(self.0.reads()).await?;
        row.map(|row| row.time("ended_at")).transpose()
    }

    /// The workspaces of jobs that have been resolved and not ended.
    pub async fn busy_workspaces(&self) -> Result<Vec<String>> {
        let busy = Status::ALL.iter().filter(|it| !it.is_terminal() && **it != Status::Created);
        let busy: Vec<_> = busy.map(|status| status.as_str()).collect();
        // A look at an index for each: finished jobs are many.
        let found = assembled(format!(
            "SELECT name FROM workspaces WHERE EXISTS (
                 SELECT 1 FROM jobs WHERE jobs.workspace = workspaces.name
                 AND jobs.status IN ({}) AND jobs.deleted_at IS NULL)",
            places(1, busy.len())
        ));
        let found = found.texts(busy).all(self.0.reads()).await?;
        found.iter().map(|row| row.text("name")).collect()
    }
}

fn read(row: &Row) -> Result<Due> {
    Ok(Due { id: row.word("id")?, workspace: row.text("workspace")?, at: row.time("due_at")? })
}
