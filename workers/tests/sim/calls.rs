//! Calls: what a process asks of the world, one by one, and what may go wrong with each.

use std::fmt;
use std::time::Duration;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rustfmt::skip]
pub(crate) enum Op {
    // Of the queue.
    Publish, Send, Last, Next, ReadLog, At, Purge, Ensure, Consumers, Deliveries, Fetch, Hints,
    Get, Create, Update, Forget, Ack, Nak, Term, Progress,
    // Of the store.
    Put, Head, Read,
    // Of the place.
    Look, IsPrepared, Prepare, Start, Close, Renew, Stop, Sweep, Clear, Runs,
    // Of the records.
    Admit, Secrets,
}

impl Op {
    /// Whether it takes time. A look at a run takes none, being made so often. Reading a log takes
    /// none because a thread waits for it, and the paused clock for that thread.
    pub(crate) const fn takes_time(self) -> bool {
        !matches!(self, Self::Look | Self::ReadLog)
    }

    /// Whether it goes to the queue, and so fails when the queue is away.
    pub(crate) const fn is_of_queue(self) -> bool {
        (self as usize) <= (Self::Progress as usize)
    }
}

/// One call, by whom it is made, what for, and how often that was before. Nothing here depends
/// on what others do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    /// Which worker, or the control plane.
    pub(crate) by: usize,
    pub(crate) op: Op,
    /// Which job it concerns, if it is about one.
    pub(crate) job: Option<usize>,
    /// The how many-th, from 1.
    pub(crate) nth: u32,
}

/// Whether something strikes before a call has its effect or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// What may go wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails; whether it had its effect depends.
    Fails(When),
    /// It takes so long, and others overtake it.
    Late(Duration),
    /// The process dies here.
    Crash(When),
    /// The whole process sleeps for so long, and then goes on with what it had.
    Sleep(When, Duration),
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, op, job, nth } = self;
        match job {
            Some(job) => write!(f, "process {by}, job {job}: {op:?} {nth}"),
            None => write!(f, "process {by}: {op:?} {nth}"),
        }
    }
}
