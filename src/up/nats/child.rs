//! `errand nats-child`: becomes the nats-server, after it has made sure that it ends with us.
//!
//! Asking the kernel for a signal at the parent's death works for the calling process only, so
//! it is asked here, between fork and exec, by this program itself.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::IntoRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The hidden command's name.
pub const COMMAND: &str = "nats-child";

/// Runs `nats-child PARENT LOCK PROGRAM ARGUMENTS…`; comes back only with an error.
pub fn become_server(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Infallible> {
    let mut next = |what| arguments.next().with_context(|| format!("{COMMAND}: no {what} given"));
    let parent = next("parent")?;
    let lock = next("lock")?;
    let program = next("program")?;
    // SIGKILL, because a server that takes its time to stop would still write to its store when
    // the next platform starts; and it loses nothing that was acknowledged.
    set_parent_process_death_signal(Some(Signal::KILL)).context("prctl")?;
    let actual = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if actual.as_deref() != parent.to_str() {
        bail!("the platform that started this server is gone");
    }
    // Held by the server for as long as it lives: two never share one store. Not closed at exec.
    let lock = rustix::fs::open(&lock, OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)
        .with_context(|| format!("cannot open {}", lock.display()))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).context("cannot lock the store")?;
    let _kept_open = lock.into_raw_fd();
    let error = Command::new(&program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
