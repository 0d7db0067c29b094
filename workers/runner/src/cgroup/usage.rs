//! What a group says of the processes that were in it; to be read before it is removed.

use std::fs;

use super::{MEMORY, PIDS};
use crate::Cgroup;

/// What became of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processes that the kernel killed for want of memory.
    pub oom_kills: u64,
    /// The most memory that was in use; `None` where the kernel does not say.
    pub peak_bytes: Option<u64>,
    /// How often a process could not be made because of the limit on their number.
    pub refused_forks: u64,
}

impl Cgroup {
    /// Reads it. What cannot be read has not happened: a kernel without a counter has no limit
    /// of that kind either.
    pub fn usage(&self) -> Usage {
        let (oom, peak) = match self {
            Self::V2 { .. } => ("memory.events", "memory.peak"),
            Self::V1 { .. } => ("memory.oom_control", "memory.max_usage_in_bytes"),
        };
        let peak = self.directory(MEMORY).and_then(|directory| {
            fs::read_to_string(directory.join(peak)).ok()?.trim().parse().ok()
        });
        Usage {
            oom_kills: self.counter(MEMORY, oom, "oom_kill").unwrap_or_default(),
            peak_bytes: peak,
            refused_forks: self.counter(PIDS, "pids.events", "max").unwrap_or_default(),
        }
    }
}
