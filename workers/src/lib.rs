//! The steps of the chain and what they need to run agents.
//!
//! No SQL, no HTTP server, no NATS types. A step cannot publish and cannot acknowledge: it
//! returns a value, and [`runtime`] does the rest.

pub mod step;
pub mod steps;

pub mod runtime;

pub mod claims;
pub mod control;
pub mod ends;
pub mod holds;
pub mod seats;
mod unchanged;

pub mod executor;
pub mod janitor;

pub mod actions;
pub mod bundle;
pub mod compose;
pub mod logs;
pub mod results;
pub mod status;
pub mod store;

pub mod patience;
pub mod ports;

pub mod meter;
pub mod trace;

pub mod fault;
