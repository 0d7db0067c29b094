//! Submissions by request and reply in the queue: `submit.<workspace>`, for whoever wants the job
//! or the reason at once and has no HTTP. A submission without an answer is a fact.
//!
//! Any process that serves the API answers; who may ask in which workspace is the server's to know.

use std::sync::Arc;

use serde_json::json;
use streams::jetstream::{Offer, Request, Service};
use streams::subject;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::http::{Answered, Submissions};
use crate::telemetry::caller;

/// What is offered.
pub const OFFER: Offer = Offer {
    name: "errand-submit",
    version: env!("CARGO_PKG_VERSION"),
    description: "Makes a job of a spec and answers with its record, or with why there is none.",
    subject: subject::SUBMITS,
};

/// Requests of one process that are judged at once; the others wait.
const AT_ONCE: usize = 64;

/// Answers until told to stop, and then what has come before.
pub async fn run(mut service: Service, submissions: Submissions, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut work = JoinSet::new();
    let mut open = true;
    loop {
        let request = tokio::select! {
            biased;
            () = stop.cancelled(), if open => {
                service.close().await;
                open = false;
                continue;
            }
            request = service.next() => request,
        };
        let Some(request) = request else { break };
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
        let submissions = submissions.clone();
        work.spawn(async move {
            deal_with(&submissions, request).await;
            drop(permit);
        });
        while work.try_join_next().is_some() {}
    }
    while work.join_next().await.is_some() {}
    service.stop().await;
}

async fn deal_with(submissions: &Submissions, request: Request) {
    let Answered { status, body, sentence } = judge(submissions, &request).await;
    let payload = body.to_string().into();
    let answered = match status {
        201 => request.answer(payload).await,
        _ => request.refuse(status, &sentence, payload).await,
    };
    if let Err(error) = answered {
        tracing::warn!(%error, "a submission was not answered");
    }
}

/// The subject decides in which workspace: who may ask there was asked for nothing else.
async fn judge(submissions: &Submissions, request: &Request) -> Answered {
    let Some(workspace) = subject::parse_submit(request.subject()) else {
        let sentence = format!("Subject '{}' is not submit.<workspace>", request.subject());
        return Answered { status: 404, body: json!({"detail": sentence}), sentence };
    };
    let keys = request.header(Submissions::KEY);
    let answered = submissions.submit(&workspace, &keys, request.payload());
    let said = request.header("traceparent");
    match said.as_slice() {
        [said] => match said.parse() {
            Ok(caller) => caller::of(caller, answered).await,
            Err(_) => answered.await,
        },
        _ => answered.await,
    }
}
