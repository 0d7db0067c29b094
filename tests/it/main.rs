//! The integration tests: real processes, a real queue, a real object store.
//!
//! The list below is the table of contents. Each test starts its own platform in a temporary
//! directory on free loopback ports and ends what it started.

#![expect(unreachable_pub, reason = "the modules of a test program are nobody else's")]

mod harness;

mod events;
mod fair;
mod holds;
mod lifecycle;
mod slots;

mod actions;
mod cgroup;

mod field_cases;

mod cluster;
mod consumers;
mod crash;
mod faulty_store;
mod hostile;
mod outage;
mod permissions;
mod sandbox;

mod conformance;
mod official_client;

mod nats_client;
#[path = "permissions/nats.rs"]
mod nats_permissions;

mod apart;
mod batch;
mod cli;
mod notify;
mod seed_examples;
mod up;

mod metrics;
mod trace;

mod chaos;
mod soak;
mod sweeping;
mod systemd;
