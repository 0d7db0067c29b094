//! Jobs as the API shows them: the typed record, the generic one, the status.

mod steps;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(super) use steps::{step, step_in_list, tasks};

use super::list::without_nulls;
use super::time;
use crate::catalog::refs;
use crate::records::{Job, Kin};

/// The only step of a job.
pub(super) const STEP: &str = "execute-agent";

/// A record of the execute collection.
pub(super) fn typed(job: &Job) -> Value {
    let shown = json!({
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
    });
    with_origin(shown, job)
}

/// A record of the generic collection.
pub(super) fn generic(job: &Job) -> Value {
    let shown = json!({
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
        "attempts": attempts(job),
    });
    with_origin(shown, job)
}

/// The job that it runs once more, and its batch; the reference's clients do not expect such
/// fields where there is neither.
fn with_origin(mut shown: Value, job: &Job) -> Value {
    if let Some(first) = job.rerun_of {
        shown["rerun_of"] = first.http().into();
    }
    if let Some(batch) = &job.batch {
        shown["batch"] = json!({"group": batch.group, "line": batch.line});
    }
    shown
}

/// Names what a job that is shown was made of, and what was made of it.
pub(super) fn with_kin(mut shown: Value, job: &Job, kin: Kin) -> Value {
    match kin.first {
        Some(first) => shown["rerun_of_name"] = first.into(),
        None if job.rerun_of.is_some() => shown["rerun_of_deleted"] = true.into(),
        None => {}
    }
    if !kin.reruns.is_empty() {
        shown["reruns"] = kin.reruns.into();
    }
    shown
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
    shown["platform_spec"] = json!({"steps": [step_spec_in_list(job)]});
    shown
}

/// What `…/status` answers; of an agent that runs, also when it said something last.
pub(super) fn status(job: &Job, last_output: Option<Timestamp>) -> Value {
    let mut details = job.status_details.clone();
    details.extend(last_output.map(|at| ("last_output_at".to_owned(), json!(time(at)))));
    json!({
        "id": job.id.http(),
        "name": job.name,
        "status": job.status,
        "status_details": details,
        "error_details": job.error_details,
        "steps": [steps::step_status(job)],
        "created_at": time(job.created_at),
        "updated_at": time(job.updated_at),
        "phase": job.phase,
        "phase_times": phase_times(job),
        "attempts": attempts(job),
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

/// The same in a list: without nulls, except inside its spec.
fn step_spec_in_list(job: &Job) -> Value {
    let mut shown = step_spec(job);
    for variable in shown["environment"].as_array_mut().into_iter().flatten() {
        *variable = without_nulls(variable.take());
    }
    shown
}

/// The starts of the agent that are over.
fn attempts(job: &Job) -> Vec<Value> {
    let attempts = job.attempts.iter().map(|end| {
        json!({
            "attempt": end.attempt,
            "place": end.place,
            "started_at": time(end.started_at),
            "ended_at": time(end.ended_at),
            "ended": end.outcome.kind(),
            "code": end.outcome.code(),
            "message": end.outcome.message(),
        })
    });
    attempts.collect()
}

fn phase_times(job: &Job) -> Map<String, Value> {
    let times = job.phase_times.iter();
    times.map(|(phase, at)| (phase.token().to_owned(), json!(time(*at)))).collect()
}
