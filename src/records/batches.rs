//! Batches: the lines that were submitted under one name, counted. A batch has no state of its
//! own: how far it is follows from its jobs, the lines that were refused, and the clock. The jobs
//! themselves are made and kept like all others.

mod received;
pub(super) use received::{came, found};

use std::collections::BTreeMap;

use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use sqlx::AnyConnection;
use streams::code::Code;
use streams::id::JobId;
use streams::outcome::{Outcome, Status};

use super::named::Named;
use super::statement::{Row, assembled, places, sql};
use super::{Error, Listed, Records, Result, Select, fresh_id};

/// How long a batch waits for its next line unless it is told otherwise.
pub const SEAL_AFTER_SECONDS: u32 = 15 * 60;

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its id.
    pub id: String,
    /// Its name: the group of its jobs.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What the keys of its lines begin with.
    pub key: String,
    /// How many lines there are to be, once that is known.
    pub expected: Option<u32>,
    /// After so long without another line one that is not whole is given up.
    pub seal_after_seconds: u32,
    /// When its first line came.
    pub created_at: Timestamp,
    /// When lines were sent to it last.
    pub updated_at: Timestamp,
}

/// A batch that lines are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBatch {
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// What the keys of its lines begin with.
    pub key: String,
    /// How many lines there are to be, if that is told.
    pub expected: Option<u32>,
    /// After so long without another line it is given up.
    pub seal_after_seconds: u32,
}

/// What became of the lines of a batch. Of several jobs of a line the newest counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many jobs are where, and why those failed that did.
    pub jobs: BTreeMap<(&'static str, Option<&'static str>), u64>,
    /// The lines that were refused.
    pub refused: u64,
    /// How many lines came, blank ones too.
    pub received: u64,
    /// When the last one did that is not blank.
    pub last_at: Option<Timestamp>,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Lines are still to come.
    Open,
    /// All of them came.
    Complete,
    /// None came for too long.
    Incomplete,
}

/// A job of a batch, in few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its line.
    pub line: u32,
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub status: Status,
    /// Why it failed.
    pub code: Option<Code>,
}

/// A line that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub line: u32,
    /// As HTTP says it.
    pub http_status: u16,
    /// Why: the JSON of the answer's detail, or the beginning of it.
    pub detail: String,
}

/// The batches.
pub struct Batches<'r>(pub(super) &'r Records);

const ROWS: Named<Batch> = Named { table: "batches", read };

/// Jobs of a batch that count.
const NEWEST: &str = "workspace = $1 AND batch = $2 AND deleted_at IS NULL AND NOT EXISTS (
     SELECT 1 FROM jobs AS later WHERE later.workspace = jobs.workspace
     AND later.batch = jobs.batch AND later.batch_line = jobs.batch_line AND later.id > jobs.id
     AND later.deleted_at IS NULL)";

impl Batches<'_> {
    /// Opens one, or goes on with one that was begun under the same key; with another key it is
    /// an [`Error::Conflict`].
    pub async fn open(&self, new: NewBatch) -> Result<Batch> {
        self.0.write(new, |new, db| open(new, db).boxed()).await
    }

    /// Notes that its lines ended at one.
    pub async fn ended(&self, batch: &Batch, last: u32) -> Result<()> {
        self.0
            .write((batch.id.clone(), last), |(id, last), db| {
                let known = sql("UPDATE batches SET expected = $2, updated_at = $3
                     WHERE id = $1 AND (expected IS NULL OR expected < $2)");
                let known = known.text(id).int(*last).time(Timestamp::now());
                async move { known.run(db).await.map(drop) }.boxed()
            })
            .await
    }

    /// Finds one.
    pub async fn get(&self, workspace: &str, name: &str) -> Result<Batch> {
        ROWS.get(self.0.reads(), workspace, name).await
    }

    /// Those of a workspace's, or of all, that are asked for.
    pub async fn list(&self, workspace: Option<&str>, asked: &Select) -> Result<Listed<Batch>> {
        ROWS.select(self.0.reads(), workspace, asked).await
    }

    /// Counts its lines.
    pub async fn tally(&self, batch: &Batch) -> Result<Tally> {
        let mut tally = Tally::default();
        let counted = assembled(format!(
            "SELECT status, outcome, COUNT(*) AS jobs, MAX(created_at) AS last_at FROM jobs
             WHERE {NEWEST} GROUP BY status, outcome"
        ));
        let counted = counted.texts([&*batch.workspace, &batch.name]);
        for row in counted.all(self.0.reads()).await? {
            let status: Status = row.word("status")?;
            let place = (status.as_str(), code(&row, status).map(Code::as_str));
            *tally.jobs.entry(place).or_default() += row.number::<u64>("jobs")?;
            tally.last_at = tally.last_at.max(row.optional_time("last_at")?);
        }
        let refused = sql("SELECT COUNT(*) AS refused, MAX(refused_at) AS last_at
             FROM batch_refusals WHERE batch = $1 AND NOT EXISTS (
                 SELECT 1 FROM jobs WHERE workspace = $2 AND jobs.batch = $3 AND batch_line = line)");
        let refused = refused.texts([&*batch.id, &batch.workspace, &batch.name]);
        let row = refused.row(self.0.reads()).await?;
        tally.refused = row.number("refused")?;
        tally.last_at = tally.last_at.max(row.optional_time("last_at")?);
        tally.received = self.received(batch).await?;
        Ok(tally)
    }

    /// The jobs that count of some of its lines, in their order.
    pub async fn members(&self, workspace: &str, name: &str, lines: &[u32]) -> Result<Vec<Member>> {
        let of_lines = assembled(format!(
            "SELECT batch_line, id, name, status, outcome FROM jobs
             WHERE {NEWEST} AND batch_line IN ({}) ORDER BY batch_line",
            places(3, lines.len())
        ));
        let of_lines = of_lines.texts([workspace, name]);
        let of_lines = lines.iter().fold(of_lines, |statement, line| statement.int(*line));
        of_lines.all(self.0.reads()).await?.iter().map(member).collect()
    }

    /// The first of its lines that were refused and have no job.
    pub async fn refusals(&self, batch: &Batch, limit: u32) -> Result<Vec<Refusal>> {
        let refused = sql("SELECT line, http_status, detail FROM batch_refusals
             WHERE batch = $1 AND NOT EXISTS (
                 SELECT 1 FROM jobs WHERE workspace = $2 AND jobs.batch = $3 AND batch_line = line)
             ORDER BY line LIMIT $4");
        let refused = refused.texts([&*batch.id, &batch.workspace, &batch.name]).int(limit);
        refused.all(self.0.reads()).await?.iter().map(refusal).collect()
    }
}

impl Tally {
    /// How far the batch is.
    pub fn progress(&self, batch: &Batch, now: Timestamp) -> Progress {
        if batch.expected.is_some_and(|expected| self.received >= expected.into()) {
            return Progress::Complete;
        }
        let last = self.last_at.map_or(batch.updated_at, |at| at.max(batch.updated_at));
        match now.duration_since(last) >= SignedDuration::from_secs(batch.seal_after_seconds.into())
        {
            true => Progress::Incomplete,
            false => Progress::Open,
        }
    }
}

impl Progress {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
        }
    }
}

async fn open(new: &NewBatch, db: &mut AnyConnection) -> Result<Batch> {
    if let Some(made) = make(new, &mut *db).await? {
        return Ok(made);
    }
    let goes_on = sql("UPDATE batches SET expected = COALESCE($3, expected),
             seal_after_seconds = $4, updated_at = $5
         WHERE workspace = $1 AND name = $2 RETURNING *")
    .texts([&*new.workspace, &new.name])
    .optional_int(new.expected.map(Into::into))
    .int(new.seal_after_seconds)
    .time(Timestamp::now())
    .row_as(db, read)
    .await?;
    if goes_on.key == new.key { Ok(goes_on) } else { Err(Error::Conflict) }
}

/// Makes one, unless there is one of the name.
async fn make(new: &NewBatch, db: &mut AnyConnection) -> Result<Option<Batch>> {
    let made = sql("INSERT INTO batches
             (id, name, workspace, submission_key, expected, seal_after_seconds, created_at,
              updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT DO NOTHING RETURNING *")
    .text(&fresh_id("batch"))
    .texts([&*new.name, &new.workspace, &new.key])
    .optional_int(new.expected.map(Into::into))
    .int(new.seal_after_seconds)
    .time(Timestamp::now());
    let made = made.one(&mut *db).await?.as_ref().map(read).transpose()?;
    if let Some(batch) = &made {
        received::gather(batch, db).await?;
    }
    Ok(made)
}

fn read(row: &Row) -> Result<Batch> {
    let expected = row.optional_int("expected")?;
    Ok(Batch {
        id: row.text("id")?,
        name: row.text("name")?,
        workspace: row.text("workspace")?,
        key: row.text("submission_key")?,
        expected: expected.map(|_| row.number("expected")).transpose()?,
        seal_after_seconds: row.number("seal_after_seconds")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

fn member(row: &Row) -> Result<Member> {
    let status = row.word("status")?;
    Ok(Member {
        line: row.number("batch_line")?,
        id: row.word("id")?,
        name: row.text("name")?,
        status,
        code: code(row, status),
    })
}

/// Why a job failed. A row that does not say so stands for a failure without a code.
fn code(row: &Row, status: Status) -> Option<Code> {
    let outcome = row.optional_json::<Outcome>("outcome").ok().flatten();
    outcome.filter(|_| status == Status::Error).and_then(|outcome| outcome.code())
}

fn refusal(row: &Row) -> Result<Refusal> {
    Ok(Refusal {
        line: row.number("line")?,
        http_status: row.number("http_status")?,
        detail: row.text("detail")?,
    })
}
