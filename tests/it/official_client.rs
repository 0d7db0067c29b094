//! The reference's own client, unmodified, drives our server: each `nemo` command that has to do
//! with execute jobs, and the Python SDK. What is expected is what the reference is known to do.
//!
//! `./dev test` installs the client; without it these tests fail.

mod agents;
mod contexts;
mod environments;
mod execute;
mod files;
mod jobs;
mod logs;
mod nemo;
mod sdk;
mod secrets;
mod tokens;
mod workspaces;
