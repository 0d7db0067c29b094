//! What a job was made of, and what was made of it.

use streams::id::JobId;

use super::{Job, Jobs};
use crate::records::Result;
use crate::records::statement::sql;

/// Reruns of one job that are named at most, the newest.
const MOST: u32 = 100;

/// The jobs that a job is akin to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kin {
    /// The name of the job that it runs once more; absent when that is none, or was deleted.
    pub first: Option<String>,
    /// The names of the jobs that run it once more, the oldest first.
    pub reruns: Vec<String>,
}

impl Jobs<'_> {
    /// What a job is akin to.
    pub async fn kin(&self, job: &Job) -> Result<Kin> {
        let first = match job.rerun_of {
            Some(first) => self.name_of(first).await?,
            None => None,
        };
        let mut reruns = sql("SELECT name FROM jobs WHERE rerun_of = $1 AND deleted_at IS NULL
             ORDER BY id DESC LIMIT $2")
        .text(&job.id.to_string())
        .int(MOST)
        .all(self.0.reads())
        .await?
        .iter()
        .map(|row| row.text("name"))
        .collect::<Result<Vec<_>>>()?;
        reruns.reverse();
        Ok(Kin { first, reruns })
    }

    async fn name_of(&self, job: JobId) -> Result<Option<String>> {
        let found = sql("SELECT name FROM jobs WHERE id = $1 AND deleted_at IS NULL");
        let found = found.text(&job.to_string()).one(self.0.reads()).await?;
        found.map(|row| row.text("name")).transpose()
    }
}
