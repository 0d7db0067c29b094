//! Jobs that are on their way, page by page and in as few words as those need who look after all
//! of them.

use jiff::Timestamp;
use streams::id::JobId;
use streams::phase::Phase;

use super::Jobs;
use crate::records::Result;
use crate::records::statement::{Row, sql};

/// A job that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The job.
    pub id: JobId,
    /// Its workspace.
    pub workspace: String,
    /// The furthest phase that is proved.
    pub phase: Phase,
    /// When it was admitted.
    pub created_at: Timestamp,
}

impl Jobs<'_> {
    /// Jobs of which a fact was seen and whose last one was not, oldest first: those after a job,
    /// or the first of all. Rows that cannot be read are left out.
    pub async fn unfinished(
        &self,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<(Vec<Unfinished>, Option<(Timestamp, String)>)> {
        let (at, id) = after.unwrap_or((Timestamp::MIN, String::new()));
        let found = sql("SELECT id, workspace, phase, created_at FROM jobs
             WHERE ended_at IS NULL AND deleted_at IS NULL AND seen = 1
             AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3");
        let rows = found.time(at).text(&id).int(limit).all(self.0.reads()).await?;
        let next = match rows.last() {
            Some(row) => Some((row.time("created_at")?, row.text("id")?)),
            None => None,
        };
        Ok((rows.iter().filter_map(|row| read(row).ok()).collect(), next))
    }
}

fn read(row: &Row) -> Result<Unfinished> {
    Ok(Unfinished {
        id: row.word("id")?,
        workspace: row.text("workspace")?,
        phase: row.word("phase")?,
        created_at: row.time("created_at")?,
    })
}
