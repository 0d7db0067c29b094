//! Reading deliveries: what a message says of its job, if it says anything to the projector.

use serde_json::Value;
use streams::broker::Delivery;
use streams::envelope::{Envelope, Undecodable};
use streams::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged, Submitted};
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
        Err(_) => told(delivery),
    }
}

fn fact(phase: Phase, delivery: &Delivery) -> Result<Change, Undecodable> {
    match phase {
        Phase::Submitted => proof(delivery, |_: Submitted, _| {}),
        Phase::Resolved => proof(delivery, |_: Resolved, _| {}),
        Phase::Staged => proof(delivery, |fact: Staged, proof| {
            proof.results = fact.input_workdir.into_iter().collect();
        }),
        Phase::Invoked => proof(delivery, |fact: Invoked, proof| {
            (proof.run, proof.attempts, proof.results) = (fact.run, fact.attempts, fact.results);
        }),
        Phase::Acted => proof(delivery, |fact: Acted, proof| proof.results = fact.results),
        Phase::Archived => proof(delivery, |_: Archived, _| {}),
    }
}

fn proof<F: Fact>(
    delivery: &Delivery,
    fill: impl FnOnce(F, &mut Proof),
) -> Result<Change, Undecodable> {
    let message = &delivery.message;
    let envelope = Envelope::<F>::decode(&message.subject, &message.payload, message.at)?;
    let mut proof = Proof {
        phase: F::PHASE,
        outcome: envelope.fact.outcome().cloned(),
        run: None,
        attempts: Vec::new(),
        results: Vec::new(),
    };
    fill(envelope.fact, &mut proof);
    Ok(Change {
        job: envelope.job,
        workspace: envelope.workspace,
        at: envelope.at,
        redelivered: delivery.times > 1,
        news: News::Fact(proof),
    })
}

/// The news of the agent's worker. Our own messages come by here as well.
fn told(delivery: &Delivery) -> Option<Change> {
    let message: StatusMessage = serde_json::from_slice(&delivery.message.payload)
        .inspect_err(|error| {
            let subject = &delivery.message.subject;
            tracing::warn!(subject, %error, "message is passed over");
        })
        .ok()?;
    let belongs = subject::status(&message.workspace, message.job) == delivery.message.subject;
    if is_ours(&message) || !belongs {
        return None;
    }
    let mut details = message.details;
    if !message.message.is_empty() {
        details.entry("message").or_insert(Value::String(message.message));
    }
    let news = match message.status {
        Status::Active => News::Running { attempt: message.attempt?, details },
        Status::Pending => News::Waiting { details },
        _ => return None,
    };
    Some(Change {
        job: message.job,
        workspace: message.workspace,
        at: message.at,
        redelivered: delivery.times > 1,
        news,
    })
}
