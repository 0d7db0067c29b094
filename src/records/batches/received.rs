//! Which lines of a batch came: each is noted once, in the transaction that makes its job or says
//! why there is none.

use std::ops::Range;

use futures_util::FutureExt;
use jiff::Timestamp;
use sqlx::AnyConnection;
use streams::fact::BatchLine;
use streams::outcome::bounded;

use super::{Batch, Batches, NewBatch, Refusal, SEAL_AFTER_SECONDS};
use crate::records::statement::sql;
use crate::records::{NewJob, Result};

impl Batches<'_> {
    /// Notes that a line was refused.
    pub async fn refuse(&self, batch: &Batch, refusal: Refusal) -> Result<()> {
        self.0
            .write((batch.id.clone(), refusal), |(id, refusal), db| refuse(id, refusal, db).boxed())
            .await
    }

    /// Notes that some lines were blank.
    pub async fn skip(&self, batch: &Batch, lines: Range<u32>) -> Result<()> {
        self.0
            .write((batch.id.clone(), lines), |(id, lines), db| {
                let noted =
                    sql("INSERT INTO batch_lines (batch, line, through) VALUES ($1, $2, $3)
                     ON CONFLICT (batch, line) DO UPDATE SET through = excluded.through
                     WHERE excluded.through > batch_lines.through");
                let noted = noted.text(id).int(lines.start).int(i64::from(lines.end) - 1);
                async move { noted.run(db).await.map(drop) }.boxed()
            })
            .await
    }

    /// How many came, blank ones too, each once: runs of blank ones may overlap when a part of
    /// them came before. What is beyond the batch's end does not count.
    pub(super) async fn received(&self, batch: &Batch) -> Result<u64> {
        let came = sql("SELECT CAST(COALESCE(SUM(CASE
                 WHEN seen IS NULL OR seen < line THEN through - line + 1
                 WHEN seen < through THEN through - seen ELSE 0 END), 0) AS BIGINT) AS came
             FROM (SELECT line, through, MAX(through) OVER (ORDER BY line
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen
                 FROM batch_lines WHERE batch = $1 AND line <= $2) AS runs");
        let end = batch.expected.map_or(i64::MAX, i64::from);
        came.text(&batch.id).int(end).row(self.0.reads()).await?.number("came")
    }
}

async fn refuse(batch: &str, refusal: &Refusal, db: &mut AnyConnection) -> Result<()> {
    sql("INSERT INTO batch_refusals (batch, line, http_status, detail, refused_at)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (batch, line) DO UPDATE
         SET http_status = excluded.http_status, detail = excluded.detail,
             refused_at = excluded.refused_at")
    .text(batch)
    .int(refusal.line)
    .int(refusal.http_status)
    .text(&bounded(refusal.detail.replace('\0', "\\0")))
    .time(Timestamp::now())
    .run(&mut *db)
    .await?;
    let came = sql("INSERT INTO batch_lines (batch, line, through) VALUES ($1, $2, $2)
         ON CONFLICT DO NOTHING");
    came.text(batch).int(refusal.line).run(db).await.map(drop)
}

/// Notes that a line became a job.
pub(in crate::records) async fn came(
    workspace: &str,
    line: &BatchLine,
    db: &mut AnyConnection,
) -> Result<()> {
    let came = sql("INSERT INTO batch_lines (batch, line, through)
         SELECT id, $3, $3 FROM batches WHERE workspace = $1 AND name = $2
         ON CONFLICT DO NOTHING");
    came.texts([workspace, &line.group]).int(line.line).run(db).await.map(drop)
}

/// Notes the lines of a batch that is made after its jobs, as when records were lost.
pub(super) async fn gather(batch: &Batch, db: &mut AnyConnection) -> Result<()> {
    let came = sql("INSERT INTO batch_lines (batch, line, through)
         SELECT DISTINCT $1, batch_line, batch_line FROM jobs
         WHERE workspace = $2 AND batch = $3 ON CONFLICT DO NOTHING");
    came.texts([&*batch.id, &batch.workspace, &batch.name]).run(db).await.map(drop)
}

/// Makes the batch of a job that is rebuilt, if the batch's key can be told from the job's. How
/// many lines it was to have nobody knows any more.
pub(in crate::records) async fn found(job: &NewJob, db: &mut AnyConnection) -> Result<()> {
    let Some((name, key)) = batch_of(job) else { return Ok(()) };
    let (name, workspace, key) = (name.to_owned(), job.workspace.clone(), key.to_owned());
    let seal_after_seconds = SEAL_AFTER_SECONDS;
    let new = NewBatch { name, workspace, key, expected: None, seal_after_seconds };
    super::make(&new, db).await.map(drop)
}

/// A batch's name and key. A line with a key of its own does not tell it, and neither does a job
/// that runs a line once more.
fn batch_of(job: &NewJob) -> Option<(&str, &str)> {
    let (batch, submission) = (job.batch.as_ref()?, job.submission.as_ref()?);
    let (key, line) = submission.key.rsplit_once('/')?;
    let is_of_batch = job.rerun_of.is_none() && line.parse() == Ok(batch.line);
    is_of_batch.then_some((&*batch.group, key))
}
