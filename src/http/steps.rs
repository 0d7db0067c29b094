//! Steps and tasks. A job has one step, and a task for each start of its agent; both are what the
//! job's facts say and nobody else can move them.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_not_found};
use super::list::{Pairs, Rules, TooSmall, scope};
use super::step_filter::StepQuery;
use super::{job_list, job_view, jobs};
use crate::catalog::shape::{Absent, Shape, Table, Unknown, field, no_rule};
use crate::records::Job;

/// In the reference's order, which its refusals show.
pub(super) const STATUSES: [&str; 10] = [
    "created",
    "pending",
    "active",
    "cancelled",
    "cancelling",
    "error",
    "completed",
    "paused",
    "pausing",
    "resuming",
];

pub(super) const STATUS: Table = Table {
    fields: &[
        field("status", Shape::Words(&STATUSES), Absent::Refused),
        field("expected_step_id", Shape::Text, Absent::Null),
        field("status_details", Shape::Dict, Absent::Null),
        field("error_details", Shape::Dict, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

pub(super) const TASK: Table = Table {
    fields: &[
        field("status", Shape::Words(&STATUSES), Absent::Text("pending")),
        field("status_details", Shape::Dict, Absent::Null),
        field("error_details", Shape::Dict, Absent::Null),
        field("error_stack", Shape::Text, Absent::Null),
    ],
    unknown: Unknown::Dropped,
    rule: no_rule,
};

/// The reference has no largest page; ours would hold every job at once.
const RULES: Rules = Rules {
    page_size: 25,
    max_page_size: 1000,
    too_small: TooSmall::GreaterThan,
    sort: &["created_at", "updated_at"],
    pages_of_nothing: 1,
};

/// The steps of a job, or of all of them. An unknown job has none.
pub(super) async fn list(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    query: Pairs,
) -> Answer<Response> {
    let query = query.or("sort", "created_at");
    let asked = query.asked(&RULES)?;
    let mut wanted = StepQuery::read(&query)?;
    if let Some(name) = scope(&name) {
        wanted.of_job(name);
    }
    let (workspace, condition) = (scope(&workspace), wanted.filter.condition());
    let echo = (!wanted.echo.is_empty()).then_some(Value::Object(wanted.echo));
    let show = job_view::step_in_list;
    job_list::answer(&api, workspace, &asked, condition, show, echo).await
}

/// One step.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name, step)): Path<(String, String, String)>,
) -> Answer<Json<Value>> {
    let missing = || missing_step(&workspace, &name, &step);
    let job = or_not_found(api.records.jobs().get(&workspace, &name).await, missing)?;
    check_step(&job, &workspace, &name, &step)?;
    Ok(Json(job_view::step(&job)))
}

/// Refuses to move a step.
pub(super) async fn set_status(
    State(api): State<Api>,
    Path((workspace, name, step)): Path<(String, String, String)>,
    body: Body,
) -> Answer<()> {
    body.read(&STATUS)?;
    find(&api, &workspace, &name, &step).await?;
    Err(ApiError::forbidden(format!(
        "Step '{step}' of job '{name}' follows the job and cannot be moved by itself; to end the \
         job, cancel it"
    )))
}

/// The tasks of a step, the newest first.
pub(super) async fn tasks(
    State(api): State<Api>,
    Path((workspace, name, step)): Path<(String, String, String)>,
) -> Answer<Json<Value>> {
    let job = find(&api, &workspace, &name, &step).await?;
    Ok(Json(json!({"data": job_view::tasks(&job)})))
}

/// One task.
pub(super) async fn task(
    State(api): State<Api>,
    Path((workspace, name, step, task)): Path<(String, String, String, String)>,
) -> Answer<Json<Value>> {
    let job = find(&api, &workspace, &name, &step).await?;
    let found = job_view::tasks(&job).into_iter().find(|known| known["name"] == task);
    found.map(Json).ok_or_else(|| {
        ApiError::not_found(format!(
            "Task '{task}' for step '{step}' of job '{name}' not found in workspace '{workspace}'."
        ))
    })
}

/// Refuses to make or to move a task.
pub(super) async fn set_task(
    State(api): State<Api>,
    Path((workspace, name, step, task)): Path<(String, String, String, String)>,
    body: Body,
) -> Answer<()> {
    body.read(&TASK)?;
    find(&api, &workspace, &name, &step).await?;
    Err(ApiError::forbidden(format!(
        "Task '{task}' of job '{name}' cannot be written: each start of the agent is a task, made \
         by the platform"
    )))
}

/// The job of a step.
async fn find(api: &Api, workspace: &str, name: &str, step: &str) -> Answer<Job> {
    let job = jobs::find(api, workspace, name).await?;
    check_step(&job, workspace, name, step)?;
    Ok(job)
}

/// As in the reference, a step is found by the name of its job and not by the id.
fn check_step(job: &Job, workspace: &str, name: &str, step: &str) -> Answer<()> {
    if step == job_view::STEP && job.name == name {
        return Ok(());
    }
    Err(ApiError::not_found(missing_step(workspace, name, step)))
}

fn missing_step(workspace: &str, name: &str, step: &str) -> String {
    format!("Step '{step}' for job '{name}' not found in workspace '{workspace}'.")
}
