//! The step of a job and its tasks, as the API shows them: derived from the job.

use serde_json::{Map, Value, json};
use streams::id::Attempt;
use streams::outcome::Status;

use super::{STEP, fileset, spec, step_spec_in_list};
use crate::catalog::{PRINCIPAL, names};
use crate::http::list::without_nulls;
use crate::http::time;
use crate::records::Job;

/// What of a task `…/status` has.
const TASK_STATUS: [&str; 8] = [
    "id",
    "name",
    "status",
    "status_details",
    "error_details",
    "error_stack",
    "created_at",
    "updated_at",
];

/// A step in a list.
pub(in crate::http) fn step_in_list(job: &Job) -> Value {
    let made_by = job.ownership.as_ref().and_then(|ownership| ownership[PRINCIPAL].as_str());
    let principal = json!({
        "principal_id": made_by.unwrap_or_default(),
        "principal_groups": [],
        "principal_authz_aliases": [],
        "principal_on_behalf_of_authz_aliases": [],
    });
    without_nulls(json!({
        "id": names::part_id("step", job.id),
        "job": job.name,
        "attempt_id": job.attempt_id,
        "fileset": fileset(job),
        "workspace": job.workspace,
        "name": STEP,
        "step_spec": step_spec_in_list(job),
        "status": job.status,
        "status_details": step_details(job),
        "error_details": job.error_details,
        "auth_context": principal,
        "created_at": time(job.created_at),
        "updated_at": changed_at(job),
    }))
}

/// A step by itself.
pub(in crate::http) fn step(job: &Job) -> Value {
    let mut config = Map::from_iter([("_step_spec_name".to_owned(), json!(STEP))]);
    if let Value::Object(spec) = spec(job) {
        config.extend(spec);
    }
    json!({
        "id": names::part_id("step", job.id),
        "entity_id": names::part_id("step", job.id),
        "parent": job.attempt_id,
        "attempt_id": job.attempt_id,
        "name": STEP,
        "workspace": job.workspace,
        "project": job.project,
        "config": config,
        "status": job.status,
        "status_details": step_details(job),
        "error_details": job.error_details,
        "created_at": time(job.created_at),
        "created_by": "service:platform",
        "updated_at": changed_at(job),
        "updated_by": "service:platform",
        "db_version": 1,
    })
}

/// The step within `…/status`, its tasks in the order in which they were made.
pub(super) fn step_status(job: &Job) -> Value {
    let mut tasks: Vec<_> = tasks(job).iter().map(task_status).collect();
    tasks.reverse();
    json!({
        "id": names::part_id("step", job.id),
        "name": STEP,
        "status": job.status,
        "status_details": step_details(job),
        "error_details": step_error(job),
        "tasks": tasks,
        "created_at": time(job.created_at),
        "updated_at": changed_at(job),
    })
}

fn task_status(task: &Value) -> Value {
    let mut shown = task.clone();
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|key, _| TASK_STATUS.contains(&key.as_str()));
    }
    shown
}

/// The tasks of the step, the newest first: one for each start of the agent, and one that waits
/// for the first.
pub(in crate::http) fn tasks(job: &Job) -> Vec<Value> {
    let newest = job.attempt.unwrap_or(Attempt::FIRST);
    (1..=newest.0).rev().map(|n| task(job, Attempt(n), newest)).collect()
}

/// A start before the newest is one that was lost with its place: nothing else is begun again.
fn task(job: &Job, attempt: Attempt, newest: Attempt) -> Value {
    let lost = json!({"message": "Local subprocess metadata not found"});
    let (status, details, error) = match attempt == newest {
        true => (job.status, json!(job.step_details), step_error(job)),
        false => (Status::Error, lost.clone(), lost),
    };
    let kind = match attempt {
        Attempt::FIRST => "task".to_owned(),
        later => format!("task-{later}"),
    };
    let id = names::part_id(&kind, job.id);
    json!({
        "id": id,
        "entity_id": id,
        "parent": names::part_id("step", job.id),
        "step_id": names::part_id("step", job.id),
        "name": job.id.task_name(attempt),
        "workspace": job.workspace,
        "project": job.project,
        "status": status,
        "status_details": details,
        "error_details": error,
        "error_stack": null,
        "created_at": time(job.created_at),
        "created_by": "service:platform",
        "updated_at": changed_at(job),
        "updated_by": "service:platform",
        "db_version": 1,
    })
}

/// As the reference has it, a step that ended badly says whether its tasks still have to follow.
/// Ours have no life of their own.
fn step_details(job: &Job) -> Map<String, Value> {
    let mut details = job.step_details.clone();
    if matches!(job.status, Status::Cancelled | Status::Error) {
        details.insert("task_cleanup_pending".to_owned(), json!(false));
    }
    details
}

/// Steps and tasks without an error have an empty object, the job has null.
fn step_error(job: &Job) -> Value {
    job.error_details.clone().unwrap_or_else(|| json!({}))
}

/// When the job moved last. Its own `updated_at` stays at its creation, as the reference's does.
fn changed_at(job: &Job) -> String {
    let moved = job.phase_times.values().max().copied();
    time(
        [moved, job.started_at, job.ended_at].into_iter().flatten().max().unwrap_or(job.updated_at),
    )
}
