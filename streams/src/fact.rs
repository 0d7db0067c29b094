//! The facts: one struct a phase, each carried by one message on one subject.
//!
//! A job that is decided before its agent could run still leaves every fact: the outcome
//! travels in them, and each later step passes it on.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::attempt::AttemptEnd;
use crate::id::{Attempt, JobId};
use crate::outcome::Outcome;
use crate::phase::Phase;
use crate::schema::DateTime;
use crate::snapshot::{ObjectRef, Part};

/// An immutable message: this has happened.
pub trait Fact: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The phase that it proves.
    const PHASE: Phase;

    /// How the job ends, once that is decided.
    fn outcome(&self) -> Option<&Outcome>;
}

/// A fact that a step produces.
pub trait Produced: Fact {
    /// The fact of a job that is decided and has nothing to do in this phase.
    fn passed_on(outcome: Outcome) -> Self;
}

/// A run was asked for. The only fact that others may publish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Submitted {
    /// The spec, as the body of an execute request has it. Absent when the job was created over
    /// HTTP: its record then holds the snapshot already.
    //
    // Whatever others send is read: a wrong one makes a job that is refused in the words of HTTP,
    // not a message that nobody hears of.
    #[serde(default, deserialize_with = "as_sent", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub spec: Option<Value>,
    /// The job's name; made from its id when absent.
    #[serde(default, deserialize_with = "as_sent", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<Value>,
    /// The rest of the job's record, a [`Recorded`], when it was created over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Part>,
}

/// A field that is there, also as null.
fn as_sent<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

/// What the record of a job that was created over HTTP holds beside its snapshot. No step asks
/// for it: the records can be made anew with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Recorded {
    /// What the job is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ownership: Option<Value>,
    /// What its owner wants remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_fields: Option<Value>,
    /// What makes a repeated submission the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission: Option<SubmissionKey>,
    /// The job that it runs once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<JobId>,
    /// The line of a batch that it was submitted with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchLine>,
}

/// A line of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchLine {
    /// The batch's name in its workspace.
    pub group: String,
    /// Which line, from 1 on.
    pub line: u32,
}

/// The key that a caller gave to a submission, and what was asked for under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionKey {
    /// The key.
    pub key: String,
    /// The hexadecimal SHA-256 of the request.
    pub digest: String,
}

/// Everything that the job needs is known and pinned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// The [`crate::snapshot::Snapshot`]; absent when the job was refused.
    pub snapshot: Option<Part>,
    /// Set when the job is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// The working directory is one bundle in the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staged {
    /// The result `input_workdir`; absent when staging failed.
    pub input_workdir: Option<SavedResult>,
    /// The agent's own files as a bundle, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ethos: Option<ObjectRef>,
    /// Set when the job is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// The agent has ended, or was decided not to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Invoked {
    /// How.
    pub outcome: Outcome,
    /// The attempt that counts; absent when the agent was never started, or nothing of it was
    /// found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The results that count; other objects of its attempts are swept once the job is finished.
    pub results: Vec<SavedResult>,
    /// Every start of the agent and how it ended, the oldest first; the newest of very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptEnd>,
}

/// The post-run action is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acted {
    /// How the job ends, the action's failure included.
    pub outcome: Outcome,
    /// The results that the action saved.
    pub results: Vec<SavedResult>,
}

/// The job is finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Archived {
    /// How it ended.
    pub outcome: Outcome,
    /// The manifest: a pure function of the first five facts and the packed log.
    pub manifest: ObjectRef,
    /// All log lines, as zstd-compressed JSON lines; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<ObjectRef>,
}

/// What is known of the attempt that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Which start of the agent it was.
    pub attempt: Attempt,
    /// The place where it ran: the id of its data directory.
    pub place: String,
    /// When the runner started.
    #[schemars(with = "DateTime")]
    pub started_at: Timestamp,
    /// When the invocation began: from here the time limit counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<DateTime>")]
    pub invoked_at: Option<Timestamp>,
    /// When the last process of the agent was gone.
    #[schemars(with = "DateTime")]
    pub ended_at: Timestamp,
    /// Tokens, when the adapter reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Lines of its log.
    pub log_lines: u64,
}

/// Token use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
}

/// A named, downloadable output of a job, whole and verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedResult {
    /// Its name.
    pub name: String,
    /// Directory (a gzipped tar) or file.
    pub kind: ResultKind,
    /// The object.
    pub object: ObjectRef,
    /// False when the agent was interrupted, so that files may be half written, when something
    /// was skipped, or when a file changed while it was saved.
    pub complete: bool,
    /// What was left out and why, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// How many further entries were left out.
    #[serde(default)]
    pub skipped_more: u64,
    /// Files that somebody still wrote to while they were saved, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_while_saved: Vec<String>,
    /// Files that hold the value of a secret of the job, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_detected: Vec<String>,
    /// Whether something of it was not searched for secrets, for want of time or because the run
    /// was lost: then it may hold one that is not named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsearched: bool,
    /// What differs from the working directory that the agent was given; of `output_workdir` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_changes: Option<OutputChanges>,
    /// When it was saved.
    #[schemars(with = "DateTime")]
    pub saved_at: Timestamp,
}

/// What an agent did to its working directory. The lists are bounded, the object holds all. Of a
/// directory in which names hold a secret there are only totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputChanges {
    /// Paths that were not there before, the first of them.
    pub added: Vec<String>,
    /// Paths whose kind, mode or contents differ.
    pub modified: Vec<String>,
    /// Paths that are gone.
    pub deleted: Vec<String>,
    /// How many of each there are in all, in the same order.
    pub totals: [u64; 3],
    /// `{"added": […], "modified": […], "deleted": […], "totals": {…}}` with every path; absent
    /// while the lists here are complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<ObjectRef>,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// Downloads as a gzipped tar.
    Directory,
    /// Downloads as it is.
    File,
}

/// An entry that was left out of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Its path; bytes that are not UTF-8 are written `\xNN`.
    pub path: String,
    /// Why.
    pub reason: String,
}

macro_rules! facts {
    ($($name:ident, $outcome:expr;)*) => {$(
        impl Fact for $name {
            const PHASE: Phase = Phase::$name;

            fn outcome(&self) -> Option<&Outcome> {
                let read: fn(&Self) -> Option<&Outcome> = $outcome;
                read(self)
            }
        }
    )*};
}

facts! {
    Submitted, |_| None;
    Resolved, |fact| fact.outcome.as_ref();
    Staged, |fact| fact.outcome.as_ref();
    Invoked, |fact| Some(&fact.outcome);
    Acted, |fact| Some(&fact.outcome);
    Archived, |fact| Some(&fact.outcome);
}

impl Produced for Resolved {
    fn passed_on(outcome: Outcome) -> Self {
        Self { snapshot: None, outcome: Some(outcome) }
    }
}

impl Produced for Staged {
    fn passed_on(outcome: Outcome) -> Self {
        Self { input_workdir: None, ethos: None, outcome: Some(outcome) }
    }
}

impl Produced for Invoked {
    fn passed_on(outcome: Outcome) -> Self {
        Self { outcome, run: None, results: Vec::new(), attempts: Vec::new() }
    }
}

impl Produced for Acted {
    fn passed_on(outcome: Outcome) -> Self {
        Self { outcome, results: Vec::new() }
    }
}
