//! The queue: its figures, and why a job waits. Both are found when they are asked for: what ten
//! thousand waiting jobs wait for changes with each that ends, and is written down nowhere.

use axum::extract::State;
use axum::{Extension, Json};
use serde_json::{Value, json};
use streams::job::Hold;
use streams::outcome::Status;
use streams::phase::Phase;

use super::Api;
use super::error::Answer;
use super::metrics::since;
use crate::auth::Caller;
use crate::records::Job;

/// More jobs than this before one are not counted.
const MANY: u32 = 1000;

/// The key under which a job says what it waits for that no worker has.
const WAITING_FOR: &str = "waiting_for";

/// How the jobs stand that have not ended, by workspace, in those that the caller may see.
pub(super) async fn figures(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Answer<Json<Value>> {
    let queue = api.records.jobs().queue().await?;
    let data: Vec<_> = queue
        .into_iter()
        .filter(|(workspace, _)| caller.role_in(workspace).is_some())
        .map(|(workspace, standing)| {
            json!({
                "workspace": workspace,
                "waiting": standing.waiting,
                "oldest_waiting_seconds": standing.oldest_waiting.map(|at| since(at).as_secs_f64()),
                "held": standing.held,
                "running": standing.running,
                "max_running": api.running_limits.of(&workspace),
            })
        })
        .collect();
    Ok(Json(json!({"data": data})))
}

/// The job with what holds it back, if it is one that could run and does not.
pub(super) async fn with_reason(api: &Api, mut job: Job) -> Answer<Job> {
    let could_run = job.status == Status::Pending
        && job.phase == Phase::Staged
        && job.hold != Hold::Held
        && !job.status_details.contains_key(WAITING_FOR);
    if could_run && let Some(reason) = reason(api, &job).await? {
        job.status_details.insert("message".to_owned(), reason.into());
    }
    Ok(job)
}

/// What a job waits for; nothing when its turn is at hand.
async fn reason(api: &Api, job: &Job) -> Answer<Option<String>> {
    let (jobs, workspace) = (api.records.jobs(), &job.workspace);
    let (running, before) = (jobs.running(workspace).await?, jobs.before(job, MANY).await?);
    let more = if before == u64::from(MANY) { " or more" } else { "" };
    let limit = api.running_limits.of(workspace);
    Ok(match limit {
        Some(limit) if running >= limit as u64 => Some(format!(
            "waits: {running} of {limit} jobs of workspace '{workspace}' run, {before}{more} wait \
             before this one"
        )),
        _ if running + before > 0 => Some(format!(
            "waits for a free slot: {running} jobs of workspace '{workspace}' run, \
             {before}{more} wait before this one"
        )),
        _ => None,
    })
}
