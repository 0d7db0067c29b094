//! Jobs: the routes that the execute collection and the generic one share, each in its shape.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Value, json};
use streams::claim::Decision;
use streams::outcome::Status;
use streams::phase::Phase;
use workers::ends::Ends;

use super::Api;
use super::body::Body;
use super::error::{Answer, ApiError, or_not_found};
use super::filter::{self, Collection};
use super::list::{Pairs, Rules, TooSmall};
use super::{job_list, job_view, queue, workspaces};
use crate::catalog::SOURCE;
use crate::logs::last_output;
use crate::records::filter::Condition;
use crate::records::{self, Job};
use crate::{removal, status};

const RULES: Rules = Rules {
    page_size: 10,
    max_page_size: 1000,
    too_small: TooSmall::GreaterThan,
    sort: &["created_at", "updated_at", "source"],
    pages_of_nothing: 1,
};

const TYPED_RULES: Rules = Rules { sort: &["created_at", "updated_at"], ..RULES };

impl<S: Send + Sync> FromRequestParts<S> for Collection {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let typed = parts.uri.path().starts_with("/apis/agents/");
        Ok(if typed { Self::Typed } else { Self::Generic })
    }
}

impl Collection {
    /// A job in the shape of the collection.
    pub(super) fn show(self, job: &Job) -> Value {
        match self {
            Self::Typed => job_view::typed(job),
            Self::Generic => job_view::generic(job),
        }
    }
}

/// Finds a job by name or id.
pub(super) async fn find(api: &Api, workspace: &str, name: &str) -> Answer<Job> {
    or_not_found(api.records.jobs().get(workspace, name).await, || missing(workspace, name))
}

/// The text for a job that is not there.
pub(super) fn missing(workspace: &str, name: &str) -> String {
    format!("Job '{name}' not found in workspace '{workspace}'.")
}

/// Lists jobs.
pub(super) async fn list(
    State(api): State<Api>,
    Path(workspace): Path<String>,
    collection: Collection,
    query: Pairs,
) -> Answer<Response> {
    let (rules, filterable, show): (_, _, job_list::Show) = match collection {
        Collection::Typed => (&TYPED_RULES, &filter::TYPED_JOBS, job_view::typed_in_list),
        Collection::Generic => (&RULES, &filter::JOBS, job_view::generic_in_list),
    };
    let asked = query.asked(rules)?;
    let wanted = filterable.read(&query)?;
    let workspace = workspaces::listed(&api, &workspace).await?;
    let condition = match collection {
        Collection::Typed => {
            Some(Condition::one_of(&records::filter::SOURCE, [SOURCE]).and(wanted.condition))
        }
        Collection::Generic => wanted.condition,
    };
    job_list::answer(&api, workspace, &asked, condition, show, wanted.echo).await
}

/// One job.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    collection: Collection,
) -> Answer<Json<Value>> {
    let job = queue::with_reason(&api, find(&api, &workspace, &name).await?).await?;
    let kin = api.records.jobs().kin(&job).await?;
    Ok(Json(job_view::with_kin(collection.show(&job), &job, kin)))
}

/// Its status with steps and tasks.
pub(super) async fn status(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let job = queue::with_reason(&api, find(&api, &workspace, &name).await?).await?;
    let last_output = match (job.status, job.attempt) {
        (Status::Active | Status::Cancelling, Some(attempt)) if job.phase < Phase::Invoked => {
            last_output(&*api.broker, &job.workspace, job.id, attempt)
                .await
                .inspect_err(|error| tracing::warn!(%error, "the last output is not told"))
                .ok()
                .flatten()
        }
        _ => None,
    };
    Ok(Json(job_view::status(&job, last_output)))
}

/// Asks for its end.
pub(super) async fn cancel(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    collection: Collection,
) -> Answer<Json<Value>> {
    let job = find(&api, &workspace, &name).await?;
    if job.status.is_terminal() {
        return Ok(Json(collection.show(&job)));
    }
    // First wins: after `closed` the agent's own end stands, and the job is answered unchanged.
    let decided = Ends::new(api.broker.clone()).decide(job.id, Decision::Cancel, "api").await?;
    if decided == Decision::Closed {
        return Ok(Json(collection.show(&job)));
    }
    let job = or_not_found(api.records.jobs().request_cancel(job.id).await, || {
        missing(&workspace, &name)
    })?;
    if job.status == Status::Cancelling
        && let Err(error) = status::tell_cancelling(&*api.broker, &job).await
    {
        // The record says it, and the job's next status message will.
        tracing::warn!(job.id = %job.id, %error, "cancel is decided, but not told");
    }
    if let Err(error) = workers::control::settle_cancel(&api.broker, &job.workspace, job.id).await {
        // The decision stands; the sweeper comes back to it.
        tracing::warn!(job.id = %job.id, %error, "cancel is decided, its end is left to the sweeper");
    }
    Ok(Json(collection.show(&job)))
}

/// Deletes a finished job with its results.
pub(super) async fn delete(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let job = find(&api, &workspace, &name).await?;
    if !job.status.is_terminal() {
        return Err(ApiError::conflict(format!(
            "Cannot delete job '{}' while it is '{}'. Cancel the job and wait for it to reach a \
             terminal state before deleting.",
            job.name, job.status
        )));
    }
    let told = api.records.jobs().notification(job.id).await;
    let told = or_not_found(told, || missing(&workspace, &name))?;
    if told.next.is_some() && told.tries.is_empty() {
        return Err(ApiError::conflict(format!(
            "The end of job '{}' is just being told, as its notify asks for; delete it in a moment.",
            job.name
        )));
    }
    if let Some((place, other)) = api.records.jobs().needed_by(job.id).await? {
        // Who may delete this one need not know of others' jobs.
        let other = if place == job.workspace {
            format!("job '{other}'")
        } else {
            "a job of another workspace".to_owned()
        };
        return Err(ApiError::conflict(format!(
            "Job '{}' cannot be deleted yet: {other} starts from its results and has not taken \
             them over. Wait for it to become active, or cancel it.",
            job.name
        )));
    }
    removal::remove(&api.records, &api.store, &*api.broker, &job.workspace, job.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lays details over the job's own.
pub(super) async fn patch_details(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
    body: Body,
) -> Answer<Json<Value>> {
    let missing = || format!("Entity '{name}' not found in workspace '{workspace}'");
    let job = or_not_found(api.records.jobs().get(&workspace, &name).await, missing)?;
    let details = body.object()?;
    or_not_found(api.records.jobs().merge_details(job.id, details).await, missing)?;
    Ok(Json(Value::Null))
}

/// Where jobs can run.
pub(super) async fn execution_profiles(State(api): State<Api>) -> Json<Value> {
    let profile = &api.catalog.settings().profile.name;
    Json(json!([
        {"provider": "subprocess", "profile": profile, "backend": "subprocess", "config": {}},
    ]))
}
