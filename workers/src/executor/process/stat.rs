//! The line in which the kernel tells what a process is: `/proc/PID/stat`, see proc(5).

use std::fs;

use rustix::process::Pid;

/// The fields of a process, as they were when it was looked at.
pub(super) struct Stat(String);

impl Stat {
    /// None of one that is gone.
    pub(super) fn of(pid: Pid) -> Option<Self> {
        fs::read_to_string(format!("/proc/{pid}/stat")).ok().map(Self)
    }

    /// A number, by where proc(5) has it: the third field or a later one.
    pub(super) fn field(&self, number: usize) -> Option<u64> {
        // The name in parentheses may itself contain parentheses and spaces.
        let (_, fields) = self.0.rsplit_once(") ")?;
        fields.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }
}
