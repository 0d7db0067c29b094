//! Jobs whose row cannot be read: each is shown with what can be, and why the rest cannot. None is
//! ever run: whoever asks for its snapshot is told so.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use streams::id::{Attempt, JobId};
use streams::job::Hold;
use streams::outcome::Status;
use streams::phase::Phase;

use super::Job;
use crate::records::statement::Row;
use crate::records::{Error, Result};

/// Fails only for a row that does not even say which job it is, or where.
pub(super) fn read(row: &Row, error: &Error) -> Result<Job> {
    let id: JobId = row.word("id")?;
    let time = |column| row.optional_time(column).ok().flatten();
    let text = |column| row.optional_text(column).ok().flatten();
    let created_at = time("created_at").unwrap_or(Timestamp::UNIX_EPOCH);
    let message = format!("The record of this job cannot be read: {error}.");
    tracing::error!(job.id = %id, %error, "job is quarantined");
    Ok(Job {
        id,
        attempt_id: id.attempt_id(Attempt::FIRST),
        name: row.text("name")?,
        workspace: row.text("workspace")?,
        project: text("project"),
        description: text("description"),
        source: text("source").unwrap_or_default(),
        spec: None,
        snapshot: None,
        request: Value::Null,
        refused: Some(message.clone()),
        agent_ref: text("agent_ref"),
        status: Status::Error,
        phase: row.word("phase").unwrap_or(Phase::Submitted),
        outcome: None,
        attempt: None,
        attempts: Vec::new(),
        status_details: Map::from_iter([("message".to_owned(), json!(message))]),
        step_details: Map::new(),
        error_details: Some(json!({"message": message, "code": null, "error": error.to_string()})),
        ownership: None,
        custom_fields: None,
        output_location: None,
        submission: None,
        rerun_of: None,
        batch: None,
        cancel_requested: false,
        hold: Hold::Never,
        start_by: time("start_by"),
        created_at,
        updated_at: time("updated_at").unwrap_or(created_at),
        started_at: None,
        ended_at: time("ended_at"),
        phase_times: BTreeMap::new(),
    })
}
