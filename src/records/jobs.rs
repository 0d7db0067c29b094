//! Jobs: admission, what is known of each, and what callers may ask of it.
//!
//! [`admission`] is the only place that makes a job; [`life`] is what facts make of one, without
//! a database; [`super::projection`] brings the two together.

mod admission;
mod due;
mod ending;
mod kin;
pub(super) mod life;
mod lists;
mod notifications;
mod quarantine;
mod queue;
mod results;
mod unfinished;

use std::collections::BTreeMap;

use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::{Map, Value};
use streams::attempt::AttemptEnd;
use streams::fact::{BatchLine, SubmissionKey};
use streams::id::{Attempt, JobId};
use streams::job::Hold;
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;
use streams::snapshot::{Snapshot, Spec};

pub(super) use admission::insert;
pub use admission::{Admitted, NewJob};
pub use due::{Due, Duty};
pub(super) use ending::ask;
pub use kin::Kin;
pub use lists::Outline;
pub use notifications::{Notification, NotificationEnd, Try};
pub use queue::Standing;
pub use results::ResultRow;
pub(super) use results::list as list_results;
pub use unfinished::Unfinished;

use super::statement::{Row, Statement, assembled, sql};
use super::{Records, Result};
use life::Life;

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The id of its first attempt; the reference's API shows one a job.
    pub attempt_id: String,
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
    /// What the API shows as `spec`; absent when it was refused.
    pub spec: Option<Spec>,
    /// What it runs with; absent when it was refused.
    pub snapshot: Option<Snapshot>,
    /// The request's spec, as it was sent.
    pub request: Value,
    /// Why it cannot be run.
    pub refused: Option<String>,
    /// `workspace/name` of its agent; absent for an inline one.
    pub agent_ref: Option<String>,
    /// What users see of where it is.
    pub status: Status,
    /// The furthest phase that is proved.
    pub phase: Phase,
    /// How it ends, once decided.
    pub outcome: Option<Outcome>,
    /// The start of the agent that counts, or the one that runs.
    pub attempt: Option<Attempt>,
    /// The starts of the agent that are over, and how each ended.
    pub attempts: Vec<AttemptEnd>,
    /// What the platform and callers say about it.
    pub status_details: Map<String, Value>,
    /// What the platform alone says: the details of its step.
    pub step_details: Map<String, Value>,
    /// Why it ended in an error.
    pub error_details: Option<Value>,
    /// Who owns it.
    pub ownership: Option<Value>,
    /// What its owner wants remembered.
    pub custom_fields: Option<Value>,
    /// The fileset for its results, when it is not the job's own.
    pub output_location: Option<String>,
    /// The key that it was submitted under, and what was asked for.
    pub submission: Option<SubmissionKey>,
    /// The job that it runs once more.
    pub rerun_of: Option<JobId>,
    /// The line of a batch that it belongs to.
    pub batch: Option<BatchLine>,
    /// Whether somebody asked for its end.
    pub cancel_requested: bool,
    /// Whether somebody keeps it from being started.
    pub hold: Hold,
    /// When its agent must have been started at the latest.
    pub start_by: Option<Timestamp>,
    /// When it was admitted.
    pub created_at: Timestamp,
    /// The same; its status does not move it.
    pub updated_at: Timestamp,
    /// When the agent started.
    pub started_at: Option<Timestamp>,
    /// When the job was finished.
    pub ended_at: Option<Timestamp>,
    /// When each phase was proved.
    pub phase_times: BTreeMap<Phase, Timestamp>,
}

/// The jobs.
pub struct Jobs<'r>(pub(super) &'r Records);

/// The tables of a whole job.
const WHOLE: &str = "jobs LEFT JOIN job_inputs ON job_inputs.job = jobs.id";

impl Jobs<'_> {
    /// Finds one by its name or its HTTP id.
    pub async fn get(&self, workspace: &str, name_or_id: &str) -> Result<Job> {
        let id = name_or_id.parse::<JobId>().map_or_else(|_| String::new(), |id| id.to_string());
        whole(
            "workspace = $1 AND deleted_at IS NULL AND (name = $2 OR id = $3)
               ORDER BY name = $2 DESC",
        )
        .texts([workspace, name_or_id, &id])
        .row_as(self.0.reads(), read)
        .await
    }

    /// Finds one that is not deleted by its id.
    pub async fn by_id(&self, job: JobId) -> Result<Option<Job>> {
        let found = whole("id = $1 AND deleted_at IS NULL").text(&job.to_string());
        found.one(self.0.reads()).await?.map(|row| read(&row)).transpose()
    }

    /// Where one is that is not deleted; its record may be large.
    pub async fn status(&self, job: JobId) -> Result<Option<Status>> {
        let found = sql("SELECT status FROM jobs WHERE id = $1 AND deleted_at IS NULL");
        let found = found.text(&job.to_string()).one(self.0.reads()).await?;
        found.map(|row| row.word("status")).transpose()
    }

    /// Lays details over those that callers gave before, key by key.
    pub async fn merge_details(&self, job: JobId, details: Map<String, Value>) -> Result<()> {
        self.0
            .write((job, details), |(job, details), db| {
                async move {
                    // The first statement locks the row, so that two merges cannot lose one another.
                    let row =
                        sql("UPDATE jobs SET seen = seen WHERE id = $1 AND deleted_at IS NULL
                               RETURNING patched_details")
                        .text(&job.to_string())
                        .row(&mut *db)
                        .await?;
                    let mut merged: Map<String, Value> =
                        row.optional_json("patched_details")?.unwrap_or_default();
                    merged.extend(details.clone());
                    sql("UPDATE jobs SET patched_details = $2 WHERE id = $1")
                        .text(&job.to_string())
                        .json(&merged)
                        .touch(db)
                        .await
                }
                .boxed()
            })
            .await
    }
}

/// What is read of a whole job. Named one by one: PostgreSQL refuses to go on with a statement
/// whose columns have become more, and those of this program must survive later migrations.
const COLUMNS: &str = "id, attempt_id, name, workspace, project, description, source, agent_ref,
    refused, ownership, custom_fields, output_location, created_at, updated_at, phase, outcome, run,
    phase_times, running, cancel_requested, hold, patched_details, start_by, ended_at,
    submission_key, submission_digest, rerun_of, batch, batch_line, snapshot, request";

/// A statement for whole jobs.
fn whole(condition: &str) -> Statement {
    assembled(whole_sql(condition))
}

fn whole_sql(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM {WHOLE} WHERE {condition}")
}

/// A row that cannot be read stands for a job with an error, so that no list fails for its sake.
fn read(row: &Row) -> Result<Job> {
    whole_job(row).or_else(|error| quarantine::read(row, &error))
}

fn whole_job(row: &Row) -> Result<Job> {
    let life = Life::read(row)?;
    let snapshot: Option<Snapshot> = row.optional_json("snapshot")?;
    Ok(Job {
        attempt_id: row.text("attempt_id")?,
        project: row.optional_text("project")?,
        description: row.optional_text("description")?,
        source: row.text("source")?,
        spec: snapshot.as_ref().map(|snapshot| snapshot.spec.clone()),
        snapshot,
        request: row.json("request")?,
        refused: row.optional_text("refused")?,
        agent_ref: row.optional_text("agent_ref")?,
        status: life.status(),
        phase: life.facts.phase,
        attempt: life.attempt(),
        attempts: life.attempts(),
        status_details: life.status_details(),
        step_details: life.own_details(&life.facts),
        error_details: life.error_details(),
        ownership: row.optional_json("ownership")?,
        custom_fields: row.optional_json("custom_fields")?,
        output_location: row.optional_text("output_location")?,
        submission: submission(row)?,
        rerun_of: row.optional_word("rerun_of")?,
        batch: batch_line(row)?,
        cancel_requested: life.facts.cancel_requested,
        hold: life.facts.hold,
        start_by: row.optional_time("start_by")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        started_at: life.started_at(),
        ended_at: life.ended_at(),
        id: life.id,
        name: life.name,
        workspace: life.workspace,
        outcome: life.facts.outcome,
        phase_times: life.phase_times,
    })
}

fn batch_line(row: &Row) -> Result<Option<BatchLine>> {
    let Some(group) = row.optional_text("batch")? else { return Ok(None) };
    Ok(Some(BatchLine { group, line: row.number("batch_line")? }))
}

fn submission(row: &Row) -> Result<Option<SubmissionKey>> {
    let (key, digest) =
        (row.optional_text("submission_key")?, row.optional_text("submission_digest")?);
    Ok(key.zip(digest).map(|(key, digest)| SubmissionKey { key, digest }))
}
