//! Pause and resume. A pause keeps a job from being started; an agent that runs is not stopped
//! and goes on: such a job, and one that has ended, is answered unchanged.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::Value;
use streams::job::Hold;
use streams::phase::Phase;
use workers::holds::Holds;

use super::Api;
use super::error::{Answer, or_not_found};
use super::job_view;
use super::jobs::{find, missing};
use crate::records::Job;
use crate::status;

/// Keeps a job from being started.
pub(super) async fn pause(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let mut job = find(&api, &workspace, &name).await?;
    let holds = Holds::new(api.broker.clone());
    if waits(&job) && !holds.is_claimed(job.id).await? {
        let (jobs, missing) = (api.records.jobs(), || missing(&workspace, &name));
        // Recorded before the workers are told: a server that dies in between leaves a job that
        // starts all the same, and none that is held without anybody seeing it. And after, so
        // that of a pause and a resume at once, both sides have the same one last.
        or_not_found(jobs.hold(job.id).await, missing)?;
        if holds.hold(job.id, "api").await? {
            job = or_not_found(jobs.hold(job.id).await, missing)?;
            told(&api, &job, "pause").await;
        } else {
            job = or_not_found(jobs.release(job.id).await, missing)?;
        }
    }
    Ok(Json(job_view::generic(&job)))
}

/// Lets it go.
pub(super) async fn resume(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let mut job = find(&api, &workspace, &name).await?;
    if job.hold == Hold::Held {
        // Also a job that is recorded as held and runs: nothing of a hold may stay behind. Twice,
        // for the reason that a pause records twice.
        let holds = Holds::new(api.broker.clone());
        holds.release(job.id).await?;
        let released = api.records.jobs().release(job.id).await;
        job = or_not_found(released, || missing(&workspace, &name))?;
        holds.release(job.id).await?;
        told(&api, &job, "resume").await;
    }
    Ok(Json(job_view::generic(&job)))
}

/// Whether its agent was not seen to run, and its end is not decided.
fn waits(job: &Job) -> bool {
    job.phase < Phase::Invoked
        && job.attempt.is_none()
        && job.outcome.is_none()
        && !job.cancel_requested
}

/// Tells the world. The record says it in any case, and the job's next message will.
async fn told(api: &Api, job: &Job, what: &'static str) {
    if let Err(error) = status::tell_held(&*api.broker, job).await {
        tracing::warn!(job.id = %job.id, %error, "{what} is recorded, but not told");
    }
}
