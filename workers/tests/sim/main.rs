//! Deterministic simulation of the whole chain: the real runtime, steps, claims and janitor of two
//! workers, on the broker in memory, under a paused clock, with all that may go wrong.

mod calls;
mod control;
mod dice;
mod fixture;
mod history;
mod host;
mod invariants;
mod objects;
mod place;
mod plan;
mod planted;
mod play;
mod process;
mod queue;
mod rules;
mod seeds;
mod worker;
mod world;
