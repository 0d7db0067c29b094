//! The queue as the records show it: how many jobs of each workspace wait and run, and how many are
//! before a job. Finished jobs, however many, are not looked at.

use std::collections::BTreeMap;

use jiff::Timestamp;
use streams::outcome::Status;

use super::{Job, Jobs};
use crate::records::Result;
use crate::records::statement::sql;

/// The jobs of a workspace that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Those whose agent is still to be started.
    pub waiting: u64,
    /// Of these, when the one that was submitted first was submitted.
    pub oldest_waiting: Option<Timestamp>,
    /// Those whose agent runs, or ended and its results are being saved.
    pub running: u64,
    /// Those that somebody holds back.
    pub held: u64,
}

impl Jobs<'_> {
    /// How jobs stand in each workspace that has any that have not ended.
    pub async fn queue(&self) -> Result<BTreeMap<String, Standing>> {
        let rows = sql("SELECT workspace, status, COUNT(*) AS jobs, MIN(created_at) AS oldest
             FROM jobs WHERE ended_at IS NULL AND deleted_at IS NULL
             GROUP BY workspace, status")
        .all(self.0.reads())
        .await?;
        let mut queue: BTreeMap<String, Standing> = BTreeMap::new();
        for row in rows {
            let standing = queue.entry(row.text("workspace")?).or_default();
            let jobs: u64 = row.number("jobs")?;
            match row.word::<Status>("status")? {
                Status::Created | Status::Pending => {
                    standing.waiting += jobs;
                    let oldest = row.time("oldest")?;
                    let known = standing.oldest_waiting.get_or_insert(oldest);
                    *known = oldest.min(*known);
                }
                Status::Active | Status::Cancelling => standing.running += jobs,
                Status::Pausing | Status::Paused | Status::Resuming => standing.held += jobs,
                // Decided, and the last steps are still to come.
                Status::Completed | Status::Cancelled | Status::Error => {}
            }
        }
        Ok(queue)
    }

    /// How many jobs of its workspace wait that were submitted before a job; `most` when there are
    /// more.
    pub async fn before(&self, job: &Job, most: u32) -> Result<u64> {
        let row = sql("SELECT COUNT(*) AS jobs FROM (
                 SELECT id FROM jobs WHERE workspace = $1 AND status = $2 AND created_at < $3
                 AND ended_at IS NULL AND deleted_at IS NULL LIMIT $4) AS waiting")
        .text(&job.workspace)
        .text(Status::Pending.as_str())
        .time(job.created_at)
        .int(most)
        .row(self.0.reads())
        .await?;
        row.number("jobs")
    }

    /// How many agents of a workspace run.
    pub async fn running(&self, workspace: &str) -> Result<u64> {
        let row = sql("SELECT COUNT(*) AS jobs FROM jobs
             WHERE workspace = $1 AND status IN ($2, $3)
             AND ended_at IS NULL AND deleted_at IS NULL")
        .text(workspace)
        .texts([Status::Active.as_str(), Status::Cancelling.as_str()])
        .row(self.0.reads())
        .await?;
        row.number("jobs")
    }
}
