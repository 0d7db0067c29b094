//! The end of the run's control group: what its limits have done, then nobody is left in it and
//! it is gone. How that changes the outcome is the verdict's affair.

use errand_runner::{Launch, cgroup};

use super::session::KILL_PATIENCE;

const MIB: u64 = 1024 * 1024;

/// What the limits have done, in words.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Why an agent that failed has failed, when it was for want of memory.
    pub(super) want_of_memory: Option<String>,
    /// Lines for the log.
    pub(super) struck: Vec<String>,
}

impl Limits {
    /// Reads the run's group and removes it. Nothing of the run may be left but what is in it.
    pub(super) fn of(launch: &Launch) -> Self {
        let Some(group) = &launch.cgroup else { return Self::default() };
        let mut limits = Self::told(launch.limits, group.usage());
        if let Err(error) = group.end(KILL_PATIENCE) {
            limits.struck.push(format!(
                "The run's control group could not be removed: {error}; the system has to be \
                 looked at."
            ));
        }
        limits
    }

    fn told(limits: errand_runner::Limits, usage: cgroup::Usage) -> Self {
        let mut told = Self::default();
        if usage.oom_kills > 0 {
            let peak = usage.peak_bytes.map(|peak| format!("peak {}", size(peak)));
            let limit = match limits.memory_bytes {
                Some(limit) => format!("limit {}", size(limit)),
                None => "the machine, or a group above the run's, has no more".to_owned(),
            };
            let figures = Vec::from_iter([Some(limit), peak].into_iter().flatten()).join(", ");
            told.want_of_memory = Some(format!("killed for want of memory: {figures}"));
            told.struck.push(format!(
                "Processes of the agent were killed for want of memory ({} of them): {figures}.",
                usage.oom_kills
            ));
        }
        if usage.refused_forks > 0 {
            let limit = limits.processes.map_or("no more".to_owned(), |limit| limit.to_string());
            told.struck.push(format!(
                "The agent may have {limit} processes and threads at a time and was refused more, \
                 {} times (worker.max_processes).",
                usage.refused_forks
            ));
        }
        told
    }
}

/// `64 MiB`, or `63.9 MiB` when it is no whole number of them.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(MIB) {
        return format!("{} MiB", bytes / MIB);
    }
    format!("{:.1} MiB", bytes as f64 / MIB as f64)
}

#[cfg(test)]
mod tests;
