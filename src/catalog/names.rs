//! Names and ids that follow from a job's id.

use streams::id::JobId;
use uuid::Uuid;

use super::refusal::SOURCE;

/// The name of a job that was given none: its source, cut, and the end of its id.
pub(crate) fn generated(job: JobId) -> String {
    let prefix: String = SOURCE.chars().take(20).collect();
    let id = job.base58().to_lowercase();
    let suffix: String = id.chars().skip(id.chars().count().saturating_sub(8)).collect();
    format!("{}-{suffix}", prefix.trim_end_matches('-'))
}

/// The id of something that a job has one of: `platform-job-<kind>-<base58>`. Always the same.
pub(crate) fn part_id(kind: &str, job: JobId) -> String {
    let uuid = Uuid::new_v5(&job.uuid(), kind.as_bytes());
    format!("platform-job-{kind}-{}", bs58::encode(uuid.as_bytes()).into_string())
}
