//! Jobs as the API shows them: the typed record, the generic one, status and steps.

use serde_json::{Map, Value, json};
use streams::id::JobId;

use super::list::without_nulls;
use super::time;
use crate::catalog::{names, refs};
use crate::records::Job;

/// The only step of an execute job.
pub(super) const STEP: &str = "execute-agent";

/// The name of its only task.
pub(super) fn task_name(job: JobId) -> String {
    format!("task-{}", job.uuid().simple())
}

/// A record of the execute collection.
pub(super) fn typed(job: &Job) -> Value {
    json!({
        "id": job.id.http(),
        "name": job.name,
        "description": job.description,
        "project": null,
        "workspace": job.workspace,
        "created_at": time(job.created_at),
        "updated_at": time(job.updated_at),
        "spec": spec(job),
        "status": job.status,
        "status_details": job.status_details,
        "error_details": job.error_details,
        "ownership": job.ownership,
        "custom_fields": job.custom_fields,
    })
}

/// A record of the generic collection.
pub(super) fn generic(job: &Job) -> Value {
    json!({
        "id": job.id.http(),
        "attempt_id": job.attempt_id,
        "name": job.name,
        "workspace": job.workspace,
        "project": job.project,
        "description": job.description,
        "source": job.source,
        "spec": spec(job),
        "platform_spec": {"steps": [step_spec(job)], "secrets": null},
        "fileset": fileset(job),
        "output_location": job.output_location,
        "status": job.status,
        "status_details": job.status_details,
        "error_details": job.error_details,
        "created_at": time(job.created_at),
        "updated_at": time(job.updated_at),
        "ownership": job.ownership,
        "custom_fields": job.custom_fields,
        "phase": job.phase,
        "phase_times": phase_times(job),
    })
}

/// A typed record in a list: without nulls, also inside its spec.
pub(super) fn typed_in_list(job: &Job) -> Value {
    let mut shown = without_nulls(typed(job));
    shown["spec"] = without_nulls(shown["spec"].take());
    shown
}

/// A generic record in a list: without nulls, except inside its spec.
pub(super) fn generic_in_list(job: &Job) -> Value {
    let mut shown = without_nulls(generic(job));
    shown["platform_spec"] = without_nulls(shown["platform_spec"].take());
    shown
}

/// What `…/status` answers.
pub(super) fn status(job: &Job) -> Value {
    let task = json!({
        "id": names::part_id("task", job.id),
        "name": task_name(job.id),
        "status": job.status,
        "status_details": job.status_details,
        "error_details": step_error(job),
        "error_stack": null,
        "created_at": time(job.created_at),
        "updated_at": changed_at(job),
    });
    let step = json!({
        "id": names::part_id("step", job.id),
        "name": STEP,
        "status": job.status,
        "status_details": job.status_details,
        "error_details": step_error(job),
        "tasks": [task],
        "created_at": time(job.created_at),
        "updated_at": changed_at(job),
    });
    json!({
        "id": job.id.http(),
        "name": job.name,
        "status": job.status,
        "status_details": job.status_details,
        "error_details": job.error_details,
        "steps": [step],
        "created_at": time(job.created_at),
        "updated_at": time(job.updated_at),
        "phase": job.phase,
        "phase_times": phase_times(job),
    })
}

/// A step in a list.
pub(super) fn step_in_list(job: &Job) -> Value {
    let nobody = json!({
        "principal_id": "",
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
        "step_spec": step_spec(job),
        "status": job.status,
        "status_details": job.status_details,
        "error_details": job.error_details,
        "auth_context": nobody,
        "created_at": time(job.created_at),
        "updated_at": changed_at(job),
    }))
}

/// A step by itself.
pub(super) fn step(job: &Job) -> Value {
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
        "status_details": job.status_details,
        "error_details": job.error_details,
        "created_at": time(job.created_at),
        "created_by": "service:platform",
        "updated_at": changed_at(job),
        "updated_by": "service:platform",
        "db_version": 1,
    })
}

/// The fileset of the job's results.
pub(super) fn fileset(job: &Job) -> String {
    match &job.output_location {
        Some(fileset) => fileset.clone(),
        None => format!("{}{}", refs::JOB_FILESET, job.name),
    }
}

/// The resolved snapshot; of a job that was refused, what was asked for.
fn spec(job: &Job) -> Value {
    match &job.spec {
        // A spec is text, numbers and maps with text keys: it always has a JSON form.
        Some(spec) => serde_json::to_value(spec).unwrap_or_default(),
        None => json!({"request": job.request}),
    }
}

fn step_spec(job: &Job) -> Value {
    let secrets = job.spec.as_ref().map(|spec| &spec.secrets);
    let environment: Vec<_> = secrets
        .into_iter()
        .flatten()
        .map(|(name, reference)| {
            json!({"name": name, "value": null, "from_secret": {"name": reference}})
        })
        .collect();
    json!({
        "name": STEP,
        "environment": environment,
        "executor": {
            "provider": "subprocess",
            "profile": "default",
            "command": ["errand-runner", "supervise"],
        },
        "config": spec(job),
        "lifecycle": {"staleness_timeout_seconds": 0},
    })
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

fn phase_times(job: &Job) -> Map<String, Value> {
    let times = job.phase_times.iter();
    times.map(|(phase, at)| (phase.token().to_owned(), json!(time(*at)))).collect()
}
