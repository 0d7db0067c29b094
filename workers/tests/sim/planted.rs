//! Faults that are planted in a world, so that each invariant is seen to be able to fail.

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// The queue takes a second fact on a subject.
    SecondFact,
    /// A run can be started twice in one directory.
    NoStartGate,
}
