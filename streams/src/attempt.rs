//! Attempts: what became of each start of a job's agent, and after which ends another may follow.
//! That another does follow is decided by Invoke, which keeps to the job's `max_attempts`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::id::Attempt;
use crate::outcome::{Outcome, bounded_to};
use crate::schema::DateTime;

/// Attempts that are remembered of a job: the newest. They ride in a fact.
const KEPT: usize = 20;

/// Bytes of the sentence about each.
const MESSAGE_BYTES: usize = 512;

/// One start of the agent, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptEnd {
    /// Which start it was.
    pub attempt: Attempt,
    /// The place where it ran: the id of its data directory.
    pub place: String,
    /// When it was started.
    #[schemars(with = "DateTime")]
    pub started_at: Timestamp,
    /// When nothing of it was left; of one that was lost, when that was noticed.
    #[schemars(with = "DateTime")]
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
}

impl AttemptEnd {
    /// Adds it to those before, of which the oldest give way.
    pub fn add_to(mut self, past: &mut Vec<Self>) {
        self.outcome = self.outcome.map_message(|message| bounded_to(MESSAGE_BYTES, message));
        past.push(self);
        let beyond = past.len().saturating_sub(KEPT);
        past.drain(..beyond);
    }
}

impl Outcome {
    /// Whether another attempt may follow an agent that ended so.
    pub fn permits_another_attempt(&self) -> bool {
        self.code().is_some_and(loses_the_agent)
    }
}

/// THE table: another attempt follows only where the platform lost the agent. What the agent did
/// itself, a limit and a cancel are how it ended: they would only come again, or were wanted.
const fn loses_the_agent(code: Code) -> bool {
    match code {
        Code::WorkerLost | Code::ContainerVanished | Code::Evicted => true,
        Code::Timeout
        | Code::AgentFailed
        | Code::AgentCrashed
        | Code::NoResult
        | Code::AdapterMissing
        | Code::AdapterProtocol
        | Code::ModelAuth
        | Code::ModelRateLimited
        | Code::OomKilled
        | Code::ImagePullFailed
        | Code::GpuUnavailable
        | Code::ActionMissing
        | Code::ActionFailed
        | Code::StageFailed
        | Code::SaveFailed
        | Code::Cancelled
        | Code::Rejected
        | Code::DiskFull
        | Code::IdleTimeout
        | Code::QueueTimeout
        | Code::SecretMissing
        | Code::Unschedulable
        | Code::BudgetExceeded => false,
    }
}

#[cfg(test)]
mod tests;
