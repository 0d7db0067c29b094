//! History: what happened in a world, as far as somebody may ask for it afterwards.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use streams::id::Attempt;
use streams::outcome::Outcome;
use streams::phase::Phase;
use tokio::time::Duration;

use crate::calls::{Call, Fault};

#[derive(Default)]
pub(crate) struct History {
    /// Lines for people, when somebody reads along.
    lines: Option<Vec<String>>,
    /// Every call, when they are noted.
    pub(crate) calls: Vec<Call>,
    pub(crate) struck: Vec<(Call, Fault)>,
    /// Until when somebody sleeps.
    pub(crate) asleep_until: Duration,
    /// Every fact that the queue has taken, in that order.
    pub(crate) facts: Vec<Told>,
    pub(crate) starts: Vec<Start>,
    /// What built-in actions have sent: the job, the message's id, its bytes.
    pub(crate) sent: Vec<(usize, String, Bytes)>,
    /// Jobs that are known to be held, or to have been.
    pub(crate) held: BTreeSet<usize>,
}

/// A fact that was stored.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) job: usize,
    pub(crate) phase: Phase,
    pub(crate) subject: String,
    pub(crate) payload: Bytes,
    pub(crate) at: Duration,
}

impl Told {
    /// How it says that the job ends.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let fact: Value = serde_json::from_slice(&self.payload).expect("a fact is JSON");
        let outcome = fact.get("outcome").filter(|outcome| !outcome.is_null())?;
        Some(Outcome::deserialize(outcome).expect("an outcome is one"))
    }
}

/// A start of an agent or of a program, and how long it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) job: usize,
    pub(crate) attempt: Attempt,
    pub(crate) place: usize,
    /// Whether it is a post-run action.
    pub(crate) program: bool,
    pub(crate) from: Duration,
    /// Known once it is over.
    pub(crate) until: Option<Duration>,
}

impl History {
    pub(crate) fn new(read_along: bool) -> Self {
        Self { lines: read_along.then(Vec::new), ..Self::default() }
    }

    pub(crate) fn tell(&mut self, now: Duration, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>9.3}s  {}", now.as_secs_f64(), what()));
        }
    }

    pub(crate) fn note_sleep(&mut self, until: Duration) {
        self.asleep_until = self.asleep_until.max(until);
    }

    /// Whether a job has come so far.
    pub(crate) fn tells(&self, job: usize, phase: Phase) -> bool {
        self.facts.iter().any(|fact| fact.job == job && fact.phase == phase)
    }

    /// When what stands on a subject was stored.
    pub(crate) fn stored_at(&self, subject: &str) -> Option<Duration> {
        self.facts.iter().find(|fact| fact.subject == subject).map(|fact| fact.at)
    }

    /// The lines, one below the other.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().flatten().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        })
    }

    /// What must be the same when the same seed is played again: times, but not by our clock.
    pub(crate) fn essence(&self) -> String {
        let mut text = String::new();
        for Told { job, phase, at, .. } in &self.facts {
            let _ = writeln!(text, "{at:?} job {job} {phase}");
        }
        for (call, fault) in &self.struck {
            let _ = writeln!(text, "{call}: {fault:?}");
        }
        for start in &self.starts {
            let _ = writeln!(text, "{start:?}");
        }
        text
    }
}
