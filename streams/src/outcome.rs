//! How a job ended, and what users see of where it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::Code;

/// How the agent's run ended. It travels in the facts from the step that decided it to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent said that it succeeded, and so did its post-run action.
    Succeeded,
    /// It ran and failed, or what belongs to it did.
    Failed {
        /// The code.
        code: Code,
        /// One sentence for a person.
        message: String,
    },
    /// A limit of time struck.
    TimedOut {
        /// Which limit: `timeout`, `idle_timeout` or `queue_timeout`.
        code: Code,
        /// One sentence for a person.
        message: String,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// One sentence for a person.
        message: String,
    },
    /// The agent was never started.
    NotRun {
        /// The code.
        code: Code,
        /// One sentence for a person.
        message: String,
    },
}

/// Bytes of a sentence for a person; it rides in every fact from here on.
const MESSAGE_BYTES: usize = 4096;

/// A sentence that is not longer than a fact can carry.
pub fn bounded(message: String) -> String {
    bounded_to(MESSAGE_BYTES, message)
}

/// A sentence of so many bytes at most, and a mark where it was cut.
pub(crate) fn bounded_to(most: usize, mut message: String) -> String {
    if message.len() > most {
        let end = (0..=most).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
    message
}

impl Outcome {
    /// How, in a word: the same as in its JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed_out",
            Self::Cancelled { .. } => "cancelled",
            Self::NotRun { .. } => "not_run",
        }
    }

    /// The code; `None` on success.
    pub const fn code(&self) -> Option<Code> {
        match self {
            Self::Succeeded => None,
            Self::Cancelled { .. } => Some(Code::Cancelled),
            Self::Failed { code, .. } | Self::TimedOut { code, .. } | Self::NotRun { code, .. } => {
                Some(*code)
            }
        }
    }

    /// The sentence for a person; empty on success.
    pub fn message(&self) -> &str {
        match self {
            Self::Succeeded => "",
            Self::Failed { message, .. }
            | Self::TimedOut { message, .. }
            | Self::Cancelled { message }
            | Self::NotRun { message, .. } => message,
        }
    }

    /// The same with another sentence, where it has one.
    pub fn map_message(mut self, change: impl FnOnce(String) -> String) -> Self {
        match &mut self {
            Self::Succeeded => {}
            Self::Failed { message, .. }
            | Self::TimedOut { message, .. }
            | Self::Cancelled { message }
            | Self::NotRun { message, .. } => *message = change(std::mem::take(message)),
        }
        self
    }

    /// Whether it succeeded.
    pub const fn succeeded(&self) -> bool {
        matches!(self, Self::Succeeded)
    }

    /// The status of a job that ended so.
    pub const fn status(&self) -> Status {
        match self {
            Self::Succeeded => Status::Completed,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::Failed { .. } | Self::TimedOut { .. } | Self::NotRun { .. } => Status::Error,
        }
    }
}

/// What users see, in the reference's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are the reference's, explained in its document")]
pub enum Status {
    Created,
    Pending,
    Active,
    Cancelling,
    Cancelled,
    Pausing,
    Paused,
    Resuming,
    Completed,
    Error,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 10] = [
        Self::Created,
        Self::Pending,
        Self::Active,
        Self::Cancelling,
        Self::Cancelled,
        Self::Pausing,
        Self::Paused,
        Self::Resuming,
        Self::Completed,
        Self::Error,
    ];

    /// Its spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Resuming => "resuming",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }

    /// Whether nothing follows.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Error)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no status.
#[derive(Debug, thiserror::Error)]
#[error("unknown status '{0}'")]
pub struct UnknownStatus(String);

impl std::str::FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(word: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| UnknownStatus(word.to_owned()))
    }
}
