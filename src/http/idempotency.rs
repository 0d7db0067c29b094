//! Submissions, each made once: the header `Idempotency-Key`, and what a repeated one is answered.
//!
//! The key is known for as long as the record of its job exists. That a key makes one job, whoever
//! sends it how often at once, is decided by the one transaction that admits the job.

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use streams::fact::SubmissionKey;

use super::Api;
use super::error::{Answer, ApiError};
use crate::catalog::{Violation, name_taken};
use crate::records::{Admitted, Job, NewJob};
use crate::submission::submit;

/// The header, as it is named in answers.
pub(super) const HEADER: &str = "Idempotency-Key";

/// The longest key.
const LONGEST: usize = 255;

/// The key of a request, if it has one.
#[derive(Clone)]
pub(super) struct IdempotencyKey(Option<String>);

impl IdempotencyKey {
    /// A key that something else than the header names.
    pub(super) fn named(key: &str) -> Answer<Self> {
        if is_key(key) { Ok(Self(Some(key.to_owned()))) } else { Err(no_key(key.as_bytes())) }
    }

    /// Reads what was given under the header's name, wherever it was given.
    pub(super) fn given<'a>(mut given: impl Iterator<Item = &'a [u8]>) -> Answer<Self> {
        let Some(value) = given.next() else { return Ok(Self(None)) };
        let key = std::str::from_utf8(value).ok().filter(|key| is_key(key));
        match (key, given.next()) {
            (Some(key), None) => Ok(Self(Some(key.to_owned()))),
            (Some(key), Some(_)) => Err(invalid("give it once", key)),
            (None, _) => Err(no_key(value)),
        }
    }

    /// Its text.
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Self> {
        Self::given(parts.headers.get_all(HEADER).iter().map(HeaderValue::as_bytes))
    }
}

fn is_key(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn no_key(sent: &[u8]) -> ApiError {
    let text = format!("got {} bytes; send a UUID, or another short name", sent.len());
    invalid(&text, &String::from_utf8_lossy(sent))
}

fn invalid(text: &str, sent: &str) -> ApiError {
    let text = format!("{HEADER} must be 1 to {LONGEST} visible ASCII characters: {text}");
    let loc = ["header".into(), HEADER.into()];
    ApiError::invalid(vec![Violation::rule(&loc, &text, &json!(sent))])
}

/// Makes a job and publishes its submission, or finds the one that the same request has made.
/// `prepare` is asked only for a submission that is new.
pub(super) async fn make(
    api: &Api,
    workspace: &str,
    IdempotencyKey(key): IdempotencyKey,
    request: &Value,
    prepare: impl Future<Output = Answer<NewJob>>,
) -> Answer<Job> {
    let submission = key.map(|key| SubmissionKey { key, digest: digest(request) });
    if let Some(submission) = &submission
        && let Some(known) = api.records.jobs().submitted(workspace, submission).await?
    {
        return answered(known, submission.key.as_str(), "", workspace);
    }
    api.intake.check(&*api.broker).await?;
    let new = NewJob { submission, ..prepare.await? };
    let key = new.submission.as_ref().map(|it| it.key.clone()).unwrap_or_default();
    let name = new.name.clone();
    let admitted = api.records.jobs().admit(new).await?;
    // Only a job that is new: the facts of one that is known may have left the streams.
    if let Admitted::Fresh(job) = &admitted {
        publish(api, job).await;
    }
    answered(admitted, &key, &name, workspace)
}

fn answered(admitted: Admitted, key: &str, name: &str, workspace: &str) -> Answer<Job> {
    match admitted {
        Admitted::Fresh(job) | Admitted::Known(job) => Ok(job),
        Admitted::KeyTaken(job) => Err(ApiError::conflict(format!(
            "{HEADER} '{key}' was given to another request, which made job '{}' in workspace \
             '{workspace}'. Send that request again, or choose another key.",
            job.name
        ))),
        Admitted::NameTaken => Err(ApiError::conflict(name_taken(name, workspace))),
        Admitted::Deleted => Err(ApiError::internal(format!("a new id of job '{name}' is taken"))),
    }
}

/// Publishes the first fact. The job is made whether or not that works: the sweeper publishes
/// for records that never saw a fact.
async fn publish(api: &Api, job: &Job) {
    if let Err(error) = submit(&*api.broker, &api.store, job).await {
        api.intake.note(&error);
        tracing::warn!(job.id = %job.id, %error, "submission is recorded but not yet published");
    }
}

/// The SHA-256 of a request, whatever the order of its fields.
fn digest(request: &Value) -> String {
    hex::encode(Sha256::digest(sorted(request).to_string()))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(Map::from_iter(fields))
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
