//! Submissions that come another way than HTTP. They are read, judged, made once and answered by
//! what the route `…/jobs/execute` is made of; how they come and go is others' affair.

use serde_json::{Value, json};

use super::body::Body;
use super::error::Answer;
use super::idempotency::{self, HEADER, IdempotencyKey};
use super::{Api, job_view};
use crate::records::Job;

/// What makes jobs of submissions. Cheap to clone.
#[derive(Clone)]
pub struct Submissions(Api);

/// What a submission is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The status that HTTP would give: 201 when the job is made, or was made by the same request.
    pub status: u16,
    /// The job's record; of a refusal, `{"detail": …}`.
    pub body: Value,
    /// A refusal in one sentence; empty where there is a job.
    pub sentence: String,
}

impl Submissions {
    /// The header that makes a repeated submission the same one.
    pub const KEY: &str = HEADER;

    pub(super) fn of(api: &Api) -> Self {
        Self(api.clone())
    }

    /// Makes a job of a request in a workspace, under the values that were given for the key.
    pub async fn submit(&self, workspace: &str, keys: &[&str], request: &[u8]) -> Answered {
        match self.make(workspace, keys, request).await {
            Ok(job) => {
                Answered { status: 201, body: job_view::typed(&job), sentence: String::new() }
            }
            Err(error) => {
                let (status, detail) = error.parts();
                let sentence = sentence(&detail);
                Answered { status, body: json!({"detail": detail}), sentence }
            }
        }
    }

    async fn make(&self, workspace: &str, keys: &[&str], request: &[u8]) -> Answer<Job> {
        let Self(api) = self;
        let key = IdempotencyKey::given(keys.iter().map(|key| key.as_bytes()))?;
        let Body(request) = Body::parse(request)?;
        let caller = api.catalog.of_queue(workspace);
        let prepare = async { Ok(api.catalog.prepare(&caller, workspace, &request).await?) };
        idempotency::make(api, workspace, key, &request, prepare).await
    }
}

/// A list of violations in the words that the record of a refused job has for it.
fn sentence(detail: &Value) -> String {
    let violation = |entry: &Value| {
        let loc = entry["loc"].as_array().into_iter().flatten();
        let loc: Vec<_> =
            loc.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned)).collect();
        format!("{}: {}", loc.join("."), entry["msg"].as_str().unwrap_or_default())
    };
    match detail {
        Value::String(text) => text.clone(),
        Value::Array(entries) => entries.iter().map(violation).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}
