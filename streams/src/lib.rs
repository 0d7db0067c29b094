//! The contract of the platform, and the only crate that knows NATS.
//!
//! ```text
//! submitted ─Resolve→ resolved ─Stage→ staged ─Invoke→ invoked ─Act→ acted ─Archive→ archived
//! ```
//!
//! Read [`phase`] first: the chain is one table there. Then [`fact`], what each message says;
//! [`subject`] and [`topology`], where it goes; [`job`], what it means for a job; and
//! [`broker`], what carries it. No SQL, no HTTP, no S3.

pub mod phase;

pub mod code;
pub mod id;
pub mod outcome;

pub mod attempt;
pub mod claim;
pub mod fact;
pub mod log;
pub mod seats;
pub mod snapshot;
pub mod status;
pub mod trace;

pub mod envelope;
pub mod subject;
pub mod topology;

pub mod job;

pub mod broker;
pub mod jetstream;
pub mod memory;

pub mod rights;

pub mod schema;
