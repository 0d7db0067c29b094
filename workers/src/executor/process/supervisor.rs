//! Ends a supervisor that does nothing any more: one that was stopped, or hangs in the kernel. It
//! is no member of its run, which is ended for itself. A number alone is never trusted.

use std::fs;
use std::io;

use errand_runner::RunDir;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::stat::Stat;

/// Kills the process that has said that it supervises this run, if there is one yet.
pub(super) fn kill(dir: &RunDir) -> io::Result<()> {
    let Some(identity) = dir.identity() else { return Ok(()) };
    let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(()) };
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    // Taken before the look: whoever has the number then is the one that is looked at.
    let handle = pidfd_open(pid, PidfdFlags::empty());
    if boot_id.trim() != identity.boot_id || start_time(pid) != Some(identity.start_time) {
        return Ok(());
    }
    match handle {
        Ok(handle) => Ok(pidfd_send_signal(handle, Signal::KILL)?),
        // Kernels before 5.3 know no handles; the look itself must do.
        Err(Errno::NOSYS) => Ok(kill_process(pid, Signal::KILL)?),
        Err(_) => Ok(()),
    }
}

/// When a process was started, in ticks since boot.
fn start_time(pid: Pid) -> Option<u64> {
    Stat::of(pid)?.field(22)
}
