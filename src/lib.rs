//! errand runs an AI agent once, to completion, as a durable job. This crate is everything that
//! a person or a database touches; the chain is in `streams`, the work in `workers`.
//!
//! In reading order: what a job is made of, what is known of it, how it is asked for, and how
//! the parts are put together.

pub mod auth;
pub mod catalog;
pub mod files;
mod private_file;
pub mod secrets;

pub mod records;

pub mod projector;
pub mod rebuild;
pub mod removal;
pub mod status;
pub mod submission;
pub mod sweeper;

pub mod http;
pub mod logs;
pub mod service;

pub mod client;

pub mod cli;
pub mod exit;

pub mod config;
pub mod doctor;
pub mod listen;
pub mod metrics;
pub mod nats;
pub mod notify;
pub mod serve;
pub mod telemetry;
pub mod up;
