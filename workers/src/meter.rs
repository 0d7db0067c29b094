//! What the runtime counts. The figures themselves, and how they are shown, are somebody else's;
//! until somebody wants them, nothing is counted.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use streams::phase::StepName;
use tokio::sync::Semaphore;

/// How the work on a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Its fact is stored, by us or by somebody before.
    Done,
    /// It is to be tried again.
    Again,
    /// The job waits: it is held, has no seat, or is somebody else's.
    Waits,
    /// It led to no fact: the job was deleted.
    Dropped,
}

impl Ended {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Done, Self::Again, Self::Waits, Self::Dropped];

    /// The word in labels.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Again => "again",
            Self::Waits => "waits",
            Self::Dropped => "dropped",
        }
    }
}

/// Who counts.
pub trait Meter: Send + Sync {
    /// A delivery came, for the first time or again.
    fn delivered(&self, step: StepName, again: bool);
    /// The work on it ended.
    fn ended(&self, step: StepName, how: Ended, took: Duration);
    /// So many agents may run here at once, and as many more as this has free.
    fn slots(&self, slots: usize, free: &Arc<Semaphore>);
    /// An agent runs.
    fn agent_runs(&self);
    /// It does no longer, as far as is known here.
    fn agent_ended(&self);
}

static METER: OnceLock<Box<dyn Meter>> = OnceLock::new();

/// Wants to count, from now on and until the process ends; false when somebody does already.
pub fn count_with(meter: Box<dyn Meter>) -> bool {
    METER.set(meter).is_ok()
}

/// An agent that is counted as running until this is dropped.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn begins() -> Self {
        count(|meter| meter.agent_runs());
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        count(|meter| meter.agent_ended());
    }
}

pub(crate) fn count(what: impl FnOnce(&dyn Meter)) {
    if let Some(meter) = METER.get() {
        what(&**meter);
    }
}
