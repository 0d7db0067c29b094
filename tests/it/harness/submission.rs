//! Submissions as facts, as somebody makes them who is no part of the platform.

use serde_json::Value;
use streams::broker::{Expect, Publication};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;

/// The fact that submits a job to the workspace `default`.
pub fn submission(job: JobId, body: &Value) -> Publication {
    Publication {
        subject: subject::fact(Phase::Submitted, "default", job),
        payload: body.to_string().into(),
        message_id: None,
        expect: Expect::Empty,
        traceparent: None,
    }
}
