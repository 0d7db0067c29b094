//! Every key in the bucket, in one place.
//!
//! Keys of a job contain its id, and those of an attempt its number, so that writing one twice
//! writes the same thing and a late worker cannot overwrite another attempt's.

use streams::id::{Attempt, JobId};

/// Below these is everything that the platform stores; the bucket may hold other things, too.
pub const PREFIXES: [&str; 4] = [BLOBS, INCOMING, JOBS, UNNAMED];

/// The bytes of files, by content.
pub const BLOBS: &str = "blobs/";

/// What jobs have, by workspace and job.
pub const JOBS: &str = "jobs/";

/// Uploads that wait until their digest is known.
pub const INCOMING: &str = "incoming/";

/// What is said of blobs that nothing names.
pub const UNNAMED: &str = "unnamed/";

/// The bytes of a fileset's file, or of a fileset's listing: stored once, by content.
pub fn blob(sha256: &str) -> String {
    let (head, _) = sha256.split_at(sha256.len().min(2));
    format!("{BLOBS}{head}/{sha256}")
}

/// Since when a blob was seen to have no name: the time of the object.
pub fn unnamed_mark(sha256: &str) -> String {
    format!("{UNNAMED}{sha256}.mark")
}

/// What is kept for a while of a blob that was collected.
pub fn unnamed_copy(sha256: &str) -> String {
    format!("{UNNAMED}{sha256}.copy")
}

/// Where an upload waits until its digest is known.
pub fn incoming(upload: uuid::Uuid) -> String {
    format!("{INCOMING}{upload}")
}

/// Everything of a job.
pub fn job(workspace: &str, job: JobId) -> String {
    format!("jobs/{workspace}/{job}/")
}

/// The job that a key is of.
pub fn job_of(key: &str) -> Option<JobId> {
    let (_workspace, rest) = key.strip_prefix(JOBS)?.split_once('/')?;
    let (job, _name) = rest.split_once('/')?;
    job.parse().ok()
}

/// A snapshot that is too large for a message.
pub fn snapshot(workspace: &str, job: JobId) -> String {
    format!("jobs/{workspace}/{job}/snapshot.json")
}

/// The rest of a job's record that is too large for a message.
pub fn record(workspace: &str, job: JobId) -> String {
    format!("jobs/{workspace}/{job}/record.json")
}

/// What Stage makes: `input_workdir` or `ethos`.
pub fn input(workspace: &str, job: JobId, name: &str) -> String {
    format!("jobs/{workspace}/{job}/input/{name}.tar.gz")
}

/// A directory among the results of an attempt.
pub fn result_directory(workspace: &str, job: JobId, attempt: Attempt, name: &str) -> String {
    format!("jobs/{workspace}/{job}/{attempt}/{name}.tar.gz")
}

/// A JSON record among the results of an attempt.
pub fn result_record(workspace: &str, job: JobId, attempt: Attempt, name: &str) -> String {
    format!("jobs/{workspace}/{job}/{attempt}/{name}.json")
}

/// Any other file among the results of an attempt.
pub fn result_file(workspace: &str, job: JobId, attempt: Attempt, name: &str) -> String {
    format!("jobs/{workspace}/{job}/{attempt}/files/{name}")
}

/// All that an agent changed in its working directory, where that is too much for a fact. No
/// result has a slash in its name, so none is in the way.
pub fn output_changes(workspace: &str, job: JobId, attempt: Attempt) -> String {
    format!("jobs/{workspace}/{job}/{attempt}/output_workdir/output_changes.json")
}

/// Log lines beyond those that ride in messages: by attempt, the number of the first, and how
/// far they reach, so that a chunk is never written again with other lines.
pub fn log_chunk(workspace: &str, job: JobId, attempt: Attempt, first: u64, end: u64) -> String {
    format!("jobs/{workspace}/{job}/log/{attempt}-{first:012}-{end:012}.jsonl")
}

/// All log lines of a finished job.
pub fn logs(workspace: &str, job: JobId) -> String {
    format!("jobs/{workspace}/{job}/logs.jsonl.zst")
}

/// The last fact of a finished job, kept when its messages leave the streams.
pub fn last_fact(workspace: &str, job: JobId) -> String {
    format!("jobs/{workspace}/{job}/archived.json")
}

/// The manifest of a finished job.
pub fn manifest(workspace: &str, job: JobId) -> String {
    format!("jobs/{workspace}/{job}/manifest.json")
}
