//! The results of jobs. They are listed when the fact that names them is applied: whole, or not.

use jiff::Timestamp;
use sqlx::AnyConnection;
use streams::fact::SavedResult;
use streams::id::{Attempt, JobId};
use streams::phase::Phase;

use super::Jobs;
use super::life;
use crate::records::Result;
use crate::records::projection::Proof;
use crate::records::statement::{Row, Statement, assembled, sql};

/// A result of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// Its name.
    pub name: String,
    /// When it was saved.
    pub created_at: Timestamp,
    /// The start of the agent that it belongs to; absent for what was there before any.
    pub attempt: Option<Attempt>,
    /// What was saved.
    pub saved: SavedResult,
}

impl Jobs<'_> {
    /// A job's results, oldest first.
    pub async fn results(&self, job: JobId) -> Result<Vec<ResultRow>> {
        let rows = select("ORDER BY results.created_at, results.name").text(&job.to_string());
        rows.all(self.0.reads()).await?.iter().map(read).collect()
    }

    /// One of them.
    pub async fn result(&self, job: JobId, name: &str) -> Result<ResultRow> {
        let row = select("AND results.name = $2").text(&job.to_string()).text(name);
        row.row_as(self.0.reads(), read).await
    }
}

/// Lists what a fact names. A name that two facts use belongs to the earlier phase, whichever of
/// them arrives first.
pub(in crate::records) async fn list(
    job: JobId,
    proof: &Proof,
    db: &mut AnyConnection,
) -> Result<()> {
    for saved in &proof.results {
        if saved.name.contains('\0') {
            tracing::warn!(job.id = %job, result.name = ?saved.name, "result cannot be listed");
            continue;
        }
        sql("INSERT INTO results (job, name, phase_rank, saved, created_at)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (job, name) DO UPDATE
             SET phase_rank = excluded.phase_rank, saved = excluded.saved,
                 created_at = excluded.created_at
             WHERE excluded.phase_rank < results.phase_rank")
        .text(&job.to_string())
        .text(&saved.name)
        .int(rank(proof.phase))
        .json(saved)
        .time(saved.saved_at)
        .run(&mut *db)
        .await?;
    }
    Ok(())
}

fn rank(phase: Phase) -> u8 {
    u8::try_from(phase.rank()).unwrap_or(u8::MAX)
}

fn select(rest: &str) -> Statement {
    assembled(format!(
        "SELECT results.name, results.created_at, results.saved, results.phase_rank,
             jobs.run, jobs.running
         FROM results JOIN jobs ON jobs.id = results.job
         WHERE results.job = $1 AND jobs.deleted_at IS NULL {rest}"
    ))
}

fn read(row: &Row) -> Result<ResultRow> {
    let by_the_agent = row.int("phase_rank")? >= rank(Phase::Invoked).into();
    Ok(ResultRow {
        name: row.text("name")?,
        created_at: row.time("created_at")?,
        // Of a job that cannot be read the results still can.
        attempt: if by_the_agent { life::attempt(row).unwrap_or_default() } else { None },
        saved: row.json("saved")?,
    })
}
