//! Reading messages: what a message says of its job, if it says anything to the projector.

use serde_json::Value;
use streams::broker::Stored;
use streams::envelope::{Envelope, Undecodable};
use streams::fact::{Acted, Archived, Fact, Invoked, Resolved, Staged, Submitted};
use streams::outcome::Status;
use streams::phase::Phase;
use streams::status::StatusMessage;
use streams::subject;

use crate::records::{Change, News, Proof};
use crate::status::is_ours;

/// What a message changes, as one that was not delivered before; `None` when there is nothing in
/// it for the records.
pub(crate) fn change(message: &Stored) -> Option<Change> {
    let read = match subject::parse_fact(&message.subject) {
        Ok(parsed) => fact(parsed.phase, message).map(Some).map_err(|error| error.to_string()),
        Err(_) => told(message).map_err(|error| error.to_string()),
    };
    read.inspect_err(|error| {
        tracing::warn!(subject = message.subject, %error, "message is passed over");
    })
    .ok()
    .flatten()
}

fn fact(phase: Phase, message: &Stored) -> Result<Change, Undecodable> {
    match phase {
        Phase::Submitted => proof(message, |_: Submitted, _| {}),
        Phase::Resolved => proof(message, |_: Resolved, _| {}),
        Phase::Staged => proof(message, |fact: Staged, proof| {
            proof.results = fact.input_workdir.into_iter().collect();
        }),
        Phase::Invoked => proof(message, |fact: Invoked, proof| {
            (proof.run, proof.attempts, proof.results) = (fact.run, fact.attempts, fact.results);
        }),
        Phase::Acted => proof(message, |fact: Acted, proof| proof.results = fact.results),
        Phase::Archived => proof(message, |_: Archived, _| {}),
    }
}

fn proof<F: Fact>(
    message: &Stored,
    fill: impl FnOnce(F, &mut Proof),
) -> Result<Change, Undecodable> {
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
        redelivered: false,
        news: News::Fact(proof),
    })
}

/// The news of the agent's worker. Our own messages come by here as well.
fn told(message: &Stored) -> serde_json::Result<Option<Change>> {
    let subject = &message.subject;
    let message: StatusMessage = serde_json::from_slice(&message.payload)?;
    let belongs = subject::status(&message.workspace, message.job) == *subject;
    if is_ours(&message) || !belongs {
        return Ok(None);
    }
    let mut details = message.details;
    if !message.message.is_empty() {
        details.entry("message").or_insert(Value::String(message.message));
    }
    let news = match (message.status, message.attempt) {
        (Status::Active, Some(attempt)) => News::Running { attempt, details },
        (Status::Pending, _) => News::Waiting { details },
        _ => return Ok(None),
    };
    Ok(Some(Change {
        job: message.job,
        workspace: message.workspace,
        at: message.at,
        redelivered: false,
        news,
    }))
}
