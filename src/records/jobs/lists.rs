//! Lists of jobs. A job may be megabytes, so a list names them first, with what reading each would
//! cost, and they are read a few at a time.

use std::collections::HashMap;

use streams::id::JobId;

use super::{Job, Jobs, WHOLE, read, whole_sql};
use crate::records::listing::List;
use crate::records::statement::{Row, places, planned};
use crate::records::{Listed, Result, Select};

/// What a list needs of a job. Neither database reads a long text for its length.
const OUTLINE: &str = "id, name, source, created_at, updated_at,
    COALESCE(octet_length(request), 0) + COALESCE(octet_length(snapshot), 0) AS bytes";

/// A job in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its id.
    pub id: JobId,
    /// Bytes of its documents, in the database.
    pub bytes: u64,
}

impl Jobs<'_> {
    /// Those of a workspace's, or of all, that are asked for. Each may be megabytes, so they are
    /// only named, with what reading them would cost.
    pub async fn list(&self, workspace: Option<&str>, asked: &Select) -> Result<Listed<Outline>> {
        let (columns, always) = (OUTLINE, Some("deleted_at IS NULL"));
        let list = List { table: "jobs", whole: WHOLE, columns, always, workspace };
        let read = |row: &Row| Ok(Outline { id: row.word("id")?, bytes: row.number("bytes")? });
        list.select(self.0.reads(), asked, read).await
    }

    /// Several whole ones, in the order of their ids here; those that are gone are left out.
    pub async fn several(&self, jobs: &[JobId]) -> Result<Vec<Job>> {
        // PostgreSQL knows no empty list.
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = jobs.iter().map(JobId::to_string).collect();
        let condition = format!("id IN ({}) AND deleted_at IS NULL", places(1, ids.len()));
        let statement = planned(whole_sql(&condition)).texts(ids.iter().map(String::as_str));
        let rows = statement.all(self.0.reads()).await?;
        let mut found = HashMap::new();
        for row in &rows {
            let job = read(row)?;
            found.insert(job.id, job);
        }
        Ok(jobs.iter().filter_map(|id| found.remove(id)).collect())
    }
}
