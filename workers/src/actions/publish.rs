//! `agents.publish`: tells a NATS subject of the user's that the job succeeded.
//!
//! The message is the one that webhooks carry. Its `Nats-Msg-Id` is the same each time, so a
//! stream that keeps the subject keeps it once.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use streams::broker::{self, Broker};
use streams::envelope::MAX_PAYLOAD_BYTES;
use streams::subject;

use super::{Definition, Done, Occasion, Way};
use crate::step::StepError;

/// Longer ones are of no use to anybody.
const SUBJECT_BYTES: usize = 256;

#[derive(Deserialize)]
struct Config {
    subject: String,
}

pub(super) fn definition() -> Definition {
    let schema = json!({
        "type": "object",
        "required": ["subject"],
        "additionalProperties": false,
        "properties": {
            "subject": {
                "type": "string",
                "description": "The NATS subject, without wildcards; the platform's own are refused.",
            },
        },
    });
    let description = "Publishes a message about the job to a NATS subject.";
    ("agents.publish", "Publish to NATS", description, schema, Way::Publish)
}

/// What the schema cannot say.
pub(super) fn check(config: &Map<String, Value>) -> Result<(), String> {
    let Config { subject } = super::read(config)?;
    let refuse = |reason: &str| Err(format!("subject: '{subject}' {reason}"));
    if subject.len() > SUBJECT_BYTES {
        return refuse(&format!("has more than {SUBJECT_BYTES} bytes"));
    }
    if subject.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return refuse("must not contain white space or control characters");
    }
    if subject.split('.').any(|token| token == "*" || token == ">") {
        return refuse("must not contain wildcards");
    }
    if subject.split('.').any(str::is_empty) {
        return refuse("must not have an empty token");
    }
    // `_` begins what clients of the server keep for themselves.
    if subject::is_reserved(&subject) || subject.starts_with('_') {
        return refuse("belongs to the platform; choose another first word");
    }
    Ok(())
}

/// Publishes it. A broker that does not answer is asked again later.
pub(crate) async fn publish(
    broker: &dyn Broker,
    occasion: &Occasion<'_>,
    config: &Map<String, Value>,
) -> Result<Done, StepError> {
    let subject = match super::read::<Config>(config) {
        Ok(Config { subject }) => subject,
        Err(reason) => return Ok(Done::failed(reason)),
    };
    let payload = occasion.announcement().await?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        let size = payload.len();
        return Ok(Done::failed(format!(
            "its message has {size} bytes, {MAX_PAYLOAD_BYTES} at most"
        )));
    }
    match broker.send(&subject, &occasion.message_id(), payload).await {
        Ok(()) => Ok(Done::default()),
        Err(error @ broker::Error::Refused { .. }) => Ok(Done::failed(error.to_string())),
        Err(error) => Err(error.into()),
    }
}
