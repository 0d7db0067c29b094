//! What a job was made of, and what was made of it.

use streams::id::JobId;
use streams::snapshot::Source;
use workers::store::key;

use super::{Job, Jobs};
use crate::records::Result;
use crate::records::blobs::sources;
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

    /// A job that has yet to be staged, and starts from what is stored of this one: its workspace and
    /// its name. Asked right before a deletion; a job that is admitted in that moment is not seen.
    pub async fn needed_by(&self, job: JobId) -> Result<Option<(String, String)>> {
        // Every key of a job's objects has its id in it, and so may a prompt.
        let mention = format!("%/{job}/%");
        let mut after = String::new();
        loop {
            let next = sql("SELECT id, workspace, name, snapshot FROM jobs
                 JOIN job_inputs ON job_inputs.job = jobs.id
                 WHERE ended_at IS NULL AND deleted_at IS NULL AND id > $1
                 AND phase IN ('submitted', 'resolved') AND snapshot LIKE $2
                 ORDER BY id LIMIT 1");
            let next = next.text(&after).text(&mention).one(self.0.reads()).await?;
            let Some(row) = next else { return Ok(None) };
            let is_its = |source: &Source| match source {
                Source::Bundle { object, .. } => key::job_of(&object.key) == Some(job),
                Source::Files { .. } => false,
            };
            if sources(&row).iter().any(is_its) {
                return Ok(Some((row.text("workspace")?, row.text("name")?)));
            }
            after = row.text("id")?;
        }
    }

    async fn name_of(&self, job: JobId) -> Result<Option<String>> {
        let found = sql("SELECT name FROM jobs WHERE id = $1 AND deleted_at IS NULL");
        let found = found.text(&job.to_string()).one(self.0.reads()).await?;
        found.map(|row| row.text("name")).transpose()
    }
}
