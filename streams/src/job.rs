//! The pure life of a job: what a fact changes, whatever order and how often it arrives.

use crate::id::Attempt;
use crate::outcome::{Outcome, Status};
use crate::phase::Phase;

/// What a fact, or the news that the agent runs, says to the life of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The phase that is proved.
    pub phase: Phase,
    /// How the job ends, once decided.
    pub outcome: Option<Outcome>,
}

/// Whether somebody keeps a job from being started. It means nothing once an agent runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Nobody ever did.
    #[default]
    Never,
    /// Somebody does.
    Held,
    /// Somebody did and let it go.
    Released,
}

/// A word that is no [`Hold`].
#[derive(Debug, thiserror::Error)]
#[error("unknown hold '{0}'")]
pub struct UnknownHold(String);

impl Hold {
    /// Its spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Held => "held",
            Self::Released => "released",
        }
    }
}

impl std::str::FromStr for Hold {
    type Err = UnknownHold;

    fn from_str(word: &str) -> Result<Self, UnknownHold> {
        [Self::Never, Self::Held, Self::Released]
            .into_iter()
            .find(|hold| hold.as_str() == word)
            .ok_or_else(|| UnknownHold(word.to_owned()))
    }
}

/// Where a job is. Everything that users see of it follows from these five.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The furthest phase that is proved.
    pub phase: Phase,
    /// How it ends, once decided.
    pub outcome: Option<Outcome>,
    /// The attempt that was seen to run; `None` from `Invoked` on.
    pub running: Option<Attempt>,
    /// Whether somebody asked for its end.
    pub cancel_requested: bool,
    /// Whether somebody keeps it from being started.
    pub hold: Hold,
}

/// What became of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The job moved forward.
    Advanced,
    /// That was known.
    Repeated,
    /// The job is further already.
    Stale,
}

impl Job {
    /// A job of which the record says that it was admitted.
    pub const fn admitted() -> Self {
        Self {
            phase: Phase::Submitted,
            outcome: None,
            running: None,
            cancel_requested: false,
            hold: Hold::Never,
        }
    }

    /// Takes in a fact. Facts may repeat and arrive late or out of order: a phase proves all
    /// that lie before it, and the furthest fact's outcome counts. Steps pass on what is decided,
    /// except that an action may turn a success into a failure on the way to `Acted`.
    pub fn apply(&mut self, step: &Step) -> Transition {
        if step.phase < self.phase {
            return Transition::Stale;
        }
        let decides = self.outcome.is_none() && step.outcome.is_some();
        if step.phase == self.phase && !decides {
            return Transition::Repeated;
        }
        self.phase = step.phase;
        self.outcome = step.outcome.clone().or_else(|| self.outcome.take());
        if self.phase >= Phase::Invoked {
            // Whether the news of a start came before must not matter.
            self.running = None;
        }
        Transition::Advanced
    }

    /// Takes in the news that an attempt runs.
    pub fn started(&mut self, attempt: Attempt) -> Transition {
        if self.phase >= Phase::Invoked {
            return Transition::Stale;
        }
        match self.running {
            Some(known) if known > attempt => Transition::Stale,
            Some(known) if known == attempt => Transition::Repeated,
            _ => {
                self.running = Some(attempt);
                Transition::Advanced
            }
        }
    }

    /// What users see of a job that waits for its agent's start.
    fn waiting(&self) -> Status {
        match (self.hold, self.phase) {
            // Until it is staged, there is work that goes on.
            (Hold::Held, Phase::Staged) => Status::Paused,
            (Hold::Held, _) => Status::Pausing,
            (Hold::Released, _) => Status::Resuming,
            (Hold::Never, Phase::Submitted) => Status::Created,
            (Hold::Never, _) => Status::Pending,
        }
    }

    /// What users see. Terminal only when the last fact stands.
    pub fn status(&self) -> Status {
        match (&self.outcome, self.phase) {
            (Some(outcome), Phase::Archived) => outcome.status(),
            (Some(Outcome::Cancelled { .. }), _) => Status::Cancelling,
            _ if self.cancel_requested && self.phase < Phase::Invoked => Status::Cancelling,
            (None, phase) if phase < Phase::Invoked && self.running.is_none() => self.waiting(),
            (_, Phase::Submitted) => Status::Created,
            (_, Phase::Resolved | Phase::Staged) if self.running.is_none() => Status::Pending,
            _ => Status::Active,
        }
    }
}

#[cfg(test)]
mod tests;
