//! Who was told of a job's end, and telling once more. The telling itself is `crate::notify`'s.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};
use streams::snapshot::Notify;

use super::error::{Answer, ApiError};
use super::jobs::find;
use super::{Api, time};
use crate::records::{Job, Notification, NotificationEnd};

/// Says what came of it so far.
pub(super) async fn get(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let job = find(&api, &workspace, &name).await?;
    let notify = asked(&job)?;
    Ok(Json(show(&job, notify, &api.records.jobs().notification(job.id).await?)))
}

/// Tells once more, under the same id, whatever came of it before.
pub(super) async fn send(
    State(api): State<Api>,
    Path((workspace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let job = find(&api, &workspace, &name).await?;
    let notify = asked(&job)?;
    if !job.status.is_terminal() {
        return Err(ApiError::conflict(format!(
            "Job '{}' is '{}'; its end is told when it has come.",
            job.name, job.status
        )));
    }
    if !notify.wants(job.status) {
        return Err(ApiError::conflict(format!(
            "Job '{}' ended as '{}', which is none of the ends that its notify.on names.",
            job.name, job.status
        )));
    }
    api.records.jobs().tell_again(job.id).await?;
    Ok(Json(show(&job, notify, &api.records.jobs().notification(job.id).await?)))
}

fn asked(job: &Job) -> Answer<&Notify> {
    let asked = job.snapshot.as_ref().and_then(|snapshot| snapshot.notify.as_ref());
    asked.ok_or_else(|| {
        let text = format!("Job '{}' tells nobody of its end: its spec has no notify.", job.name);
        ApiError::not_found(text)
    })
}

fn show(job: &Job, notify: &Notify, notification: &Notification) -> Value {
    let state = match notification.end {
        Some(NotificationEnd::Sent) => "sent",
        Some(NotificationEnd::GivenUp) => "given_up",
        Some(NotificationEnd::NotWanted) => "not_wanted",
        None if job.status.is_terminal() => "sending",
        None => "waiting",
    };
    let next = notification.next.filter(|_| state == "sending");
    let tries = notification.tries.iter();
    json!({
        "state": state,
        "on": notify.on,
        "next_try_at": next.map(time),
        "tries": tries.map(|one| json!({"at": time(one.at), "error": one.error})).collect::<Vec<_>>(),
    })
}
