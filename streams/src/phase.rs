//! The chain: one table, a row per phase.
//!
//! Subjects, streams, consumers, the API's phase names and the diagram of `errand topology` are
//! derived from [`Phase::spec`]. To see where a job goes next, read it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The position in the chain that a fact proves. Totally ordered; a job only moves forward.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Somebody asked for a run.
    Submitted,
    /// Everything it needs is known and pinned.
    Resolved,
    /// Its input is one bundle in the object store.
    Staged,
    /// Its agent has run, or was decided not to.
    Invoked,
    /// What was to follow a success has followed.
    Acted,
    /// It is finished.
    Archived,
}

/// The code that consumes one fact and produces the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the table below says what each consumes")]
pub enum StepName {
    Resolve,
    Stage,
    Invoke,
    Act,
    Archive,
}

/// The stream that keeps a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactStream {
    /// First facts; full means that submissions are refused and running jobs go on.
    Intake,
    /// The other five.
    Jobs,
}

/// How a step's deliveries are shared among workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// One durable consumer for all workspaces; the work is short.
    All,
    /// One durable consumer a workspace, pulled round robin and never beyond free slots.
    PerWorkspace,
}

/// A row of the chain.
#[derive(Clone, Copy, Debug)]
pub struct PhaseSpec {
    /// The word in subjects, labels and JSON.
    pub token: &'static str,
    /// Where its facts are kept.
    pub stream: FactStream,
    /// What consumes them, how, and the phase that this produces; `None` at the end.
    pub next: Option<Next>,
    /// One line for people.
    pub meaning: &'static str,
}

/// What follows a phase.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// The step that consumes the fact.
    pub step: StepName,
    /// How its deliveries are shared.
    pub share: Share,
    /// The phase whose fact it produces.
    pub phase: Phase,
}

impl Phase {
    /// The chain, in order.
    pub const CHAIN: [Self; 6] =
        [Self::Submitted, Self::Resolved, Self::Staged, Self::Invoked, Self::Acted, Self::Archived];

    /// THE table: what stands where, and what follows.
    #[rustfmt::skip]
    pub const fn spec(self) -> PhaseSpec {
        use FactStream::{Intake, Jobs};
        use Share::{All, PerWorkspace};
        use StepName::{Act, Archive, Invoke, Resolve, Stage};
        match self {
            Self::Submitted => row("submitted", Intake, Some((Resolve, All,          Self::Resolved)), "a run was asked for"),
            Self::Resolved  => row("resolved",  Jobs,   Some((Stage,   All,          Self::Staged)),   "all that it needs is pinned"),
            Self::Staged    => row("staged",    Jobs,   Some((Invoke,  PerWorkspace, Self::Invoked)),  "its working directory is in the object store"),
            Self::Invoked   => row("invoked",   Jobs,   Some((Act,     All,          Self::Acted)),    "its agent has ended and its results are saved"),
            Self::Acted     => row("acted",     Jobs,   Some((Archive, All,          Self::Archived)), "its post-run action is done"),
            Self::Archived  => row("archived",  Jobs,   None,                                          "it is finished"),
        }
    }

    /// The word in subjects, labels and JSON.
    pub const fn token(self) -> &'static str {
        self.spec().token
    }

    /// The phase after this one; `None` at the end.
    pub const fn next(self) -> Option<Self> {
        match self.spec().next {
            Some(next) => Some(next.phase),
            None => None,
        }
    }

    /// Its place in the chain, from 0.
    pub const fn rank(self) -> usize {
        self as usize
    }
}

const fn row(
    token: &'static str,
    stream: FactStream,
    next: Option<(StepName, Share, Phase)>,
    meaning: &'static str,
) -> PhaseSpec {
    let next = match next {
        Some((step, share, phase)) => Some(Next { step, share, phase }),
        None => None,
    };
    PhaseSpec { token, stream, next, meaning }
}

/// A half-made edit does not compile: declaration order, [`Phase::CHAIN`] and every row's next
/// phase must tell the same story, and each step must stand in exactly one row.
const _: () = {
    let mut i = 0;
    while i < Phase::CHAIN.len() {
        assert!(Phase::CHAIN[i].rank() == i, "CHAIN must list the phases in declaration order");
        match Phase::CHAIN[i].spec().next {
            Some(next) => {
                assert!(next.phase.rank() == i + 1, "a row must name the phase right after it");
                assert!(next.step as usize == i, "steps are declared in the order of the chain");
            }
            None => assert!(i + 1 == Phase::CHAIN.len(), "only the last phase has no next"),
        }
        i += 1;
    }
};

impl StepName {
    /// The steps, in the order of the chain.
    pub const ALL: [Self; 5] = [Self::Resolve, Self::Stage, Self::Invoke, Self::Act, Self::Archive];

    /// Its name in options, consumers and labels.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Stage => "stage",
            Self::Invoke => "invoke",
            Self::Act => "act",
            Self::Archive => "archive",
        }
    }

    /// The phase whose facts it consumes.
    pub const fn consumes(self) -> Phase {
        Phase::CHAIN[self as usize]
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

/// A word that names no phase or step.
#[derive(Debug, thiserror::Error)]
#[error("unknown {kind} '{word}', expected one of {expected}")]
pub struct UnknownWord {
    kind: &'static str,
    word: String,
    expected: String,
}

impl FromStr for Phase {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        find("phase", word, &Self::CHAIN, |phase| phase.token())
    }
}

impl FromStr for StepName {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        find("step", word, &Self::ALL, |step| step.token())
    }
}

fn find<T: Copy>(
    kind: &'static str,
    word: &str,
    all: &[T],
    token: impl Fn(T) -> &'static str,
) -> Result<T, UnknownWord> {
    all.iter().copied().find(|item| token(*item) == word).ok_or_else(|| UnknownWord {
        kind,
        word: word.to_owned(),
        expected: all.iter().map(|item| token(*item)).collect::<Vec<_>>().join(", "),
    })
}
