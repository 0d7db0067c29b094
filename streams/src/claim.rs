//! The two records that live in key-value buckets: who runs a job's agent, and who decided its
//! end. What they mean, and when one may be taken over, is in `workers`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::attempt::AttemptEnd;
use crate::id::{Attempt, JobId};

/// The key of the claim on a job's agent, in the bucket `claims`.
pub fn agent_key(job: JobId) -> String {
    job.to_string()
}

/// The key of the claim on a job's post-run action, in the same bucket.
pub fn action_key(job: JobId) -> String {
    format!("{job}.act")
}

/// The right to run the agent of one job, or its post-run action where that is a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Format version; 1.
    pub v: u32,
    /// The data directory whose runs these are, by its id: only there can the agent be found again.
    pub place: String,
    /// The worker process: a name that is new at each start.
    pub worker: String,
    /// Which start of the agent this is.
    pub attempt: Attempt,
    /// When this worker took it, or renewed it last.
    pub at: Timestamp,
    /// Whether this attempt's runner was about to be started: from here on, a run that is found
    /// nowhere was lost, and is not begun with.
    #[serde(default)]
    pub started: bool,
    /// When and where that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Whether it was taken over from a place that was lost, with the agent of this attempt: that
    /// agent may have run, and this attempt is not started again.
    #[serde(default)]
    pub lost: bool,
    /// Whether the run is over and its fact published. Said for people; whether a job is past its
    /// run is asked of the facts.
    #[serde(default)]
    pub done: bool,
    /// Whether the job was ended before its agent was started: nothing is ever started under this
    /// claim, and nobody takes it over.
    #[serde(default)]
    pub settled: bool,
    /// Whether its worker gave it back before it started this attempt: it is anybody's.
    #[serde(default)]
    pub released: bool,
    /// The attempts before this one, the newest of very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<AttemptEnd>,
}

/// The start of an attempt. It is kept apart from the claim's own place: whoever takes a claim
/// over is somewhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When.
    pub at: Timestamp,
    /// The place.
    pub place: String,
}

impl Claim {
    /// A claim of a worker on a job's first attempt, of which nothing is done yet.
    pub fn new(place: &str, worker: &str) -> Self {
        Self {
            v: 1,
            place: place.to_owned(),
            worker: worker.to_owned(),
            attempt: Attempt::FIRST,
            at: Timestamp::now(),
            started: false,
            start: None,
            lost: false,
            done: false,
            settled: false,
            released: false,
            past: Vec::new(),
        }
    }
}

/// Who decided how the job ends. Key: the job's id in the bucket `ends`; created once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Format version; 1.
    pub v: u32,
    /// The decision.
    pub decided: Decision,
    /// Who asked, for people.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// The two ways in which an end is decided; the first to be created wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Somebody cancelled the job: it never becomes completed.
    Cancel,
    /// The agent had ended: a cancel comes too late.
    Closed,
}
