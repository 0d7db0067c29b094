//! Admission: the only way in which a job comes to be. Idempotent by id and by the submission's
//! key, unique by name among the jobs of a workspace that are not deleted, and closed to ids that
//! were deleted.

use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::Value;
use sqlx::AnyConnection;
use streams::fact::{BatchLine, SubmissionKey};
use streams::id::{Attempt, JobId};
use streams::outcome::Status;
use streams::phase::Phase;
use streams::snapshot::Snapshot;

use super::{Job, Jobs, read, whole};
use crate::records::statement::{Row, Statement, sql};
use crate::records::{Result, batches};

/// A job to be admitted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace: String,
    /// Its project.
    pub project: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What made it.
    pub source: String,
    /// What it runs with, or the text that says why it cannot be run.
    pub snapshot: std::result::Result<Snapshot, String>,
    /// The request's spec, as it was sent.
    pub request: Value,
    /// `workspace/name` of its agent; absent for an inline one.
    pub agent_ref: Option<String>,
    /// Who owns it.
    pub ownership: Option<Value>,
    /// What its owner wants remembered.
    pub custom_fields: Option<Value>,
    /// The fileset for its results, when it is not the job's own.
    pub output_location: Option<String>,
    /// What makes a repeated submission the same one.
    pub submission: Option<SubmissionKey>,
    /// The job that it runs once more.
    pub rerun_of: Option<JobId>,
    /// The line of a batch that it belongs to.
    pub batch: Option<BatchLine>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

/// What admission said.
#[derive(Clone, Debug, PartialEq)]
pub enum Admitted {
    /// The job is made.
    Fresh(Job),
    /// The id was known, or the submission's key with the same request: this is the job as it
    /// stands, whatever was asked for now.
    Known(Job),
    /// The submission's key stands for another request, which made this job.
    KeyTaken(Job),
    /// The id belonged to a job that was deleted.
    Deleted,
    /// Another job of the workspace has the name, or a job of another workspace has the id.
    NameTaken,
}

impl Jobs<'_> {
    /// Admits a job.
    pub async fn admit(&self, new: NewJob) -> Result<Admitted> {
        self.0.write(new, |new, db| admit(new, db).boxed()).await
    }

    /// What a repeated submission is answered with; `None` for one that is not known.
    pub async fn submitted(
        &self,
        workspace: &str,
        submission: &SubmissionKey,
    ) -> Result<Option<Admitted>> {
        let found = keyed(workspace, submission).one(self.0.reads()).await?;
        found.map(|row| compared(&row, submission)).transpose()
    }
}

async fn admit(new: &NewJob, db: &mut AnyConnection) -> Result<Admitted> {
    let id = new.id.to_string();
    let buried = sql("SELECT job FROM tombstones WHERE job = $1").text(&id);
    if buried.one(&mut *db).await?.is_some() {
        return Ok(Admitted::Deleted);
    }
    let fresh = insert(new, db).await?;
    let stored = whole("id = $1").text(&id).one(&mut *db).await?;
    Ok(match stored.map(|row| read(&row)).transpose()? {
        Some(job) if fresh => Admitted::Fresh(job),
        Some(job) if job.workspace == new.workspace => Admitted::Known(job),
        Some(_) => Admitted::NameTaken,
        None => by_key(new, db).await?.unwrap_or(Admitted::NameTaken),
    })
}

/// What the submission's key stands for, if it was given before.
async fn by_key(new: &NewJob, db: &mut AnyConnection) -> Result<Option<Admitted>> {
    let Some(submission) = &new.submission else { return Ok(None) };
    let found = keyed(&new.workspace, submission).one(db).await?;
    found.map(|row| compared(&row, submission)).transpose()
}

/// The job that was submitted under a key.
fn keyed(workspace: &str, submission: &SubmissionKey) -> Statement {
    whole("workspace = $1 AND submission_key = $2 AND deleted_at IS NULL")
        .texts([workspace, &submission.key])
}

fn compared(row: &Row, submission: &SubmissionKey) -> Result<Admitted> {
    let job = read(row)?;
    Ok(match row.optional_text("submission_digest")? {
        Some(digest) if digest == submission.digest => Admitted::Known(job),
        _ => Admitted::KeyTaken(job),
    })
}

/// Whether there was no job of the id, none of the name and none of the submission's key.
pub(in crate::records) async fn insert(new: &NewJob, db: &mut AnyConnection) -> Result<bool> {
    let id = new.id.to_string();
    let refused = new.snapshot.as_ref().err().map(|text| text.replace('\0', "\\0"));
    let limit = new.snapshot.as_ref().ok().and_then(|snapshot| snapshot.queue_limit);
    let made =
        sql("INSERT INTO jobs (id, attempt_id, name, workspace, project, description, source,
             agent_ref, refused, ownership, custom_fields, output_location, created_at, updated_at,
             phase, phase_times, status, start_by, submission_key, submission_digest, rerun_of,
             batch, batch_line, notify_at, cancel_requested, seen, purged)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, '{}', $15, $16,
             $17, $18, $19, $20, $21, $22, 0, 0, 0)
         ON CONFLICT DO NOTHING")
        .texts([&*id, &new.id.attempt_id(Attempt::FIRST), &new.name, &new.workspace])
        .optional_text(new.project.as_deref())
        .optional_text(new.description.as_deref())
        .text(&new.source)
        .optional_text(new.agent_ref.as_deref())
        .optional_text(refused.as_deref())
        .optional_json(new.ownership.as_ref())
        .optional_json(new.custom_fields.as_ref())
        .optional_text(new.output_location.as_deref())
        .time(new.created_at)
        .text(Phase::Submitted.token())
        .text(Status::Created.as_str())
        .optional_time(limit.map(|limit| limit.at))
        .optional_text(new.submission.as_ref().map(|submission| submission.key.as_str()))
        .optional_text(new.submission.as_ref().map(|submission| submission.digest.as_str()))
        .optional_text(new.rerun_of.map(|job| job.to_string()).as_deref())
        .optional_text(new.batch.as_ref().map(|batch| batch.group.as_str()))
        .optional_int(new.batch.as_ref().map(|batch| batch.line.into()))
        .optional_time(
            new.snapshot.as_ref().ok().and_then(|it| it.notify.as_ref()).map(|_| new.created_at),
        )
        .run(&mut *db)
        .await?;
    if made == 0 {
        return Ok(false);
    }
    sql("INSERT INTO job_inputs (job, snapshot, request) VALUES ($1, $2, $3)")
        .text(&id)
        .optional_json(new.snapshot.as_ref().ok())
        .json(&new.request)
        .run(&mut *db)
        .await?;
    if let Some(line) = &new.batch {
        batches::came(&new.workspace, line, db).await?;
    }
    Ok(true)
}
