//! Streams, consumers and buckets as data, derived from the chain.

use std::time::Duration;

use crate::phase::{FactStream, Phase, Share, StepName};
use crate::subject;

/// A message is redelivered when it was neither acknowledged nor reported in progress for so
/// long. Progress is reported every third of it.
pub const ACK_WAIT: Duration = Duration::from_secs(30);

/// How long the server remembers message ids.
pub const DUPLICATE_WINDOW: Duration = Duration::from_secs(10 * 60);

/// The streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamName {
    /// First facts.
    Intake,
    /// The other facts.
    Jobs,
    /// Visible changes.
    Status,
    /// Log batches.
    Logs,
    /// Input that is no fact.
    Refused,
}

/// The key-value buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// Who runs a job's agent.
    Claims,
    /// Who decided a job's end.
    Ends,
    /// Who keeps a job from being started.
    Holds,
    /// Which jobs of a workspace with a limit may run.
    Seats,
}

/// What happens when a stream is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// New messages are refused.
    RefuseNew,
    /// The oldest make room.
    DropOldest,
}

/// A stream's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// Which one.
    pub name: StreamName,
    /// The subjects that it keeps.
    pub subjects: Vec<String>,
    /// Messages a subject; 0 = any number.
    pub per_subject: u32,
    /// Whether the server refuses a message to a subject that is full. Facts: a second one on a
    /// subject is never stored, whoever sends it.
    pub refuse_second: bool,
    /// Bytes at most; 0 = any number.
    pub max_bytes: u64,
    /// What happens when it is full.
    pub full: Full,
    /// Which of the subjects are sent on once they are stored, and where to. Nothing of ours reads
    /// there: it is for others, who see no message that was refused.
    pub sent_on: Option<(&'static str, &'static str)>,
    /// What it is for.
    pub meaning: &'static str,
}

/// A durable consumer's settings. All acknowledge explicitly, wait [`ACK_WAIT`], deliver any
/// number of times and have no backoff list (it would replace the wait).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConsumerSpec {
    /// The stream that it reads.
    pub stream: StreamName,
    /// Its durable name.
    pub name: String,
    /// What it filters; empty = everything in the stream.
    pub filter: String,
}

/// Limits of the streams; every installation has the default, tests have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of submissions that may wait; beyond, submissions are refused.
    pub intake_max_bytes: u64,
    /// Bytes of log batches that are kept in the stream.
    pub logs_max_bytes: u64,
    /// Servers that keep a copy of each message (1, 3 or 5).
    pub replicas: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            intake_max_bytes: 1024 * 1024 * 1024,
            logs_max_bytes: 4 * 1024 * 1024 * 1024,
            replicas: 1,
        }
    }
}

impl StreamName {
    /// Its name on the server.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intake => "INTAKE",
            Self::Jobs => "JOBS",
            Self::Status => "STATUS",
            Self::Logs => "LOGS",
            Self::Refused => "REFUSED",
        }
    }

    /// The stream of a phase's facts.
    pub const fn of(phase: Phase) -> Self {
        match phase.spec().stream {
            FactStream::Intake => Self::Intake,
            FactStream::Jobs => Self::Jobs,
        }
    }
}

impl Bucket {
    /// Every bucket.
    pub const ALL: [Self; 4] = [Self::Claims, Self::Ends, Self::Holds, Self::Seats];

    /// Its name on the server.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::Ends => "ends",
            Self::Holds => "holds",
            Self::Seats => "seats",
        }
    }
}

/// Every stream, in the order in which they are made.
pub fn streams(limits: Limits) -> Vec<StreamSpec> {
    let facts = |name| {
        Phase::CHAIN
            .into_iter()
            .filter(|phase| StreamName::of(*phase) == name)
            .map(subject::facts)
            .collect::<Vec<_>>()
    };
    let one = |subject: &str| vec![subject.to_owned()];
    vec![
        StreamSpec {
            name: StreamName::Intake,
            subjects: facts(StreamName::Intake),
            per_subject: 1,
            refuse_second: true,
            max_bytes: limits.intake_max_bytes,
            full: Full::RefuseNew,
            sent_on: None,
            meaning: "submissions; full means that more are refused while jobs go on",
        },
        StreamSpec {
            name: StreamName::Jobs,
            subjects: facts(StreamName::Jobs),
            per_subject: 1,
            refuse_second: true,
            max_bytes: 0,
            full: Full::RefuseNew,
            sent_on: None,
            meaning: "the other facts; removed only when a job is finished and kept long enough",
        },
        StreamSpec {
            name: StreamName::Status,
            subjects: one("status.>"),
            per_subject: 16,
            refuse_second: false,
            max_bytes: 0,
            full: Full::DropOldest,
            sent_on: Some(subject::CHANGES),
            meaning: "one message per visible change; the last is the present state",
        },
        StreamSpec {
            name: StreamName::Logs,
            subjects: one("logs.>"),
            per_subject: 0,
            refuse_second: false,
            max_bytes: limits.logs_max_bytes,
            full: Full::RefuseNew,
            sent_on: None,
            meaning: "log lines in batches",
        },
        StreamSpec {
            name: StreamName::Refused,
            subjects: one(subject::REFUSED),
            per_subject: 0,
            refuse_second: false,
            max_bytes: 64 * 1024 * 1024,
            full: Full::DropOldest,
            sent_on: None,
            meaning: "input that is no fact, with the reason",
        },
    ]
}

/// The consumer of a step: one for all, or one of the workspace.
pub fn step_consumer(step: StepName, workspace: &str) -> ConsumerSpec {
    let phase = step.consumes();
    let (name, filter) = match phase.spec().next.map(|next| next.share) {
        Some(Share::PerWorkspace) => (
            format!("{}{}", scoped_prefix(step), subject::escape(workspace)),
            subject::facts_in(phase, workspace),
        ),
        _ => (step.token().to_owned(), subject::facts(phase)),
    };
    ConsumerSpec { stream: StreamName::of(phase), name, filter }
}

/// The workspace of a per-workspace consumer's name.
pub fn scope_of(step: StepName, consumer: &str) -> Option<String> {
    subject::unescape(consumer.strip_prefix(&scoped_prefix(step))?)
}

fn scoped_prefix(step: StepName) -> String {
    format!("{step}_")
}

/// What the projector reads: both fact streams and the status stream, for the news that only
/// Invoke can give.
pub fn projector_consumers() -> Vec<ConsumerSpec> {
    [
        (StreamName::Intake, subject::facts(Phase::Submitted)),
        (StreamName::Jobs, String::new()),
        (StreamName::Status, String::new()),
    ]
    .into_iter()
    .map(|(stream, filter)| ConsumerSpec { stream, name: "projector".to_owned(), filter })
    .collect()
}

/// What the sweeper reads: which messages lead to nothing and are to be removed.
pub fn leftovers_consumer() -> ConsumerSpec {
    let (stream, name) = (StreamName::Refused, "sweeper".to_owned());
    ConsumerSpec { stream, name, filter: String::new() }
}

/// Every consumer that exists before any workspace has a job.
pub fn shared_consumers() -> Vec<ConsumerSpec> {
    StepName::ALL
        .into_iter()
        .filter(|step| step.consumes().spec().next.is_some_and(|next| next.share == Share::All))
        .map(|step| step_consumer(step, ""))
        .chain(projector_consumers())
        .collect()
}

#[cfg(test)]
mod tests;
