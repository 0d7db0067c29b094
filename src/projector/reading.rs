//! Reading deliveries: what a message says of its job, if it says anything to the projector.

use serde_json::Value;
use streams::broker::Delivery;
use streams::envelope::{Envelope, Undecodable};
use streams::fact::{
    Acted, Archived, Fact, Invoked, Resolved, Run, SavedResult, Staged, Submitted,
};
use streams::outcome::Status;
use streams::phase::Phase;
use streams::status::StatusMessage;
use streams::subject;

use crate::records::{Change, News, Proof};
use crate::status::is_ours;

/// What the delivery changes; `None` when there is nothing in it for the records.
pub(super) fn change(delivery: &Delivery) -> Option<Change> {
    match subject::parse_fact(&delivery.message.subject) {
        Ok(parsed) => fact(parsed.phase, delivery)
            .inspect_err(|error| {
                let subject = &delivery.message.subject;
                tracing::warn!(subject, %error, "message is passed over");
            })
            .ok(),
        Err(_) => running(delivery),
    }
}

fn fact(phase: Phase, delivery: &Delivery) -> Result<Change, Undecodable> {
    let none = Vec::new;
    match phase {
        Phase::Submitted => proof(delivery, |_: Submitted| (None, none())),
        Phase::Resolved => proof(delivery, |_: Resolved| (None, none())),
        Phase::Staged => {
            proof(delivery, |fact: Staged| (None, fact.input_workdir.into_iter().collect()))
        }
        Phase::Invoked => proof(delivery, |fact: Invoked| (fact.run, fact.results)),
        Phase::Acted => proof(delivery, |fact: Acted| (None, fact.results)),
        Phase::Archived => proof(delivery, |_: Archived| (None, none())),
    }
}

fn proof<F: Fact>(
    delivery: &Delivery,
    parts: impl FnOnce(F) -> (Option<Run>, Vec<SavedResult>),
) -> Result<Change, Undecodable> {
    let message = &delivery.message;
    let envelope = Envelope::<F>::decode(&message.subject, &message.payload, message.at)?;
    let outcome = envelope.fact.outcome().cloned();
    let (run, results) = parts(envelope.fact);
    Ok(Change {
        job: envelope.job,
        workspace: envelope.workspace,
        at: envelope.at,
        redelivered: delivery.times > 1,
        news: News::Fact(Proof { phase: F::PHASE, outcome, run, results }),
    })
}

/// The news of the agent's worker. Our own messages come by here as well.
fn running(delivery: &Delivery) -> Option<Change> {
    let message: StatusMessage = serde_json::from_slice(&delivery.message.payload)
        .inspect_err(|error| {
            let subject = &delivery.message.subject;
            tracing::warn!(subject, %error, "message is passed over");
        })
        .ok()?;
    let belongs = subject::status(&message.workspace, message.job) == delivery.message.subject;
    if is_ours(&message) || !belongs || message.status != Status::Active {
        return None;
    }
    let attempt = message.attempt?;
    let mut details = message.details;
    if !message.message.is_empty() {
        details.entry("message").or_insert(Value::String(message.message));
    }
    Some(Change {
        job: message.job,
        workspace: message.workspace,
        at: message.at,
        redelivered: delivery.times > 1,
        news: News::Running { attempt, details },
    })
}
