//! Makes a group and sets its limits.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::detect::enable;
use super::{CPU, MEMORY, PIDS};
use crate::{Cgroup, Limits};

/// How often a parent may vanish under our hands: it goes with the last group in it.
const TRIES: usize = 20;

/// The span over which processor time is measured out. A quota has to be 1 ms at least, so small
/// shares are measured out over a longer one.
const PERIOD_MICROS: u64 = 100_000;
const LONG_PERIOD_MICROS: u64 = 1_000_000;
const LEAST_QUOTA_MICROS: u64 = 1_000;

/// No machine has more, and the kernel refuses numbers that are much larger.
const MOST_CPU_MILLIS: u64 = 10_000_000;

/// Why there is no group with these limits.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel did not make it.
    #[error("cannot make the control group {path}: {source}", path = path.display())]
    Make {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A limit that was asked for cannot be set.
    #[error(
        "the limit {file} = {value} cannot be set{place}: {reason}; leave it out of the compute \
         spec, or see what errand doctor says of control groups",
        place = path.as_ref().map(|path| format!(" in {}", path.display())).unwrap_or_default()
    )]
    Limit {
        /// The kernel's name of the limit.
        file: &'static str,
        /// What it should have been.
        value: String,
        /// The group; `None` where the controller has none.
        path: Option<PathBuf>,
        /// Why.
        reason: String,
    },
}

/// What is written into a group.
struct Setting {
    controller: &'static str,
    file: &'static str,
    value: String,
    /// Whether the run must not begin without it.
    is_asked_for: bool,
}

fn setting(controller: &'static str, file: &'static str, value: impl ToString) -> Setting {
    Setting { controller, file, value: value.to_string(), is_asked_for: true }
}

/// Holds where the kernel has it.
fn besides(controller: &'static str, file: &'static str, value: impl ToString) -> Setting {
    Setting { is_asked_for: false, ..setting(controller, file, value) }
}

impl Cgroup {
    /// Makes the group and its parent, and sets the limits; one that is there is set anew. The
    /// number of processes is bounded where that can be, the other limits are, or this fails.
    pub fn make(&self, limits: &Limits) -> Result<(), Error> {
        for directory in self.directories() {
            make_with_parent(directory, matches!(self, Self::V2 { .. }))
                .map_err(|source| Error::Make { path: directory.to_owned(), source })?;
        }
        for setting in self.settings(limits) {
            self.set(&setting)?;
        }
        Ok(())
    }

    fn settings(&self, limits: &Limits) -> Vec<Setting> {
        let mut settings = Vec::new();
        let is_v2 = matches!(self, Self::V2 { .. });
        if is_v2 {
            // Half a run is worth nothing and may wait for ever for its other half.
            settings.push(besides(MEMORY, "memory.oom.group", 1));
        }
        if let Some(bytes) = limits.memory_bytes {
            // Without the second a limit of memory would be one of speed.
            settings.extend(if is_v2 {
                [setting(MEMORY, "memory.max", bytes), besides(MEMORY, "memory.swap.max", 0)]
            } else {
                [
                    setting(MEMORY, "memory.limit_in_bytes", bytes),
                    besides(MEMORY, "memory.memsw.limit_in_bytes", bytes),
                ]
            });
        }
        if let Some(millis) = limits.cpu_millis {
            let (quota, period) = quota(millis);
            if is_v2 {
                settings.push(setting(CPU, "cpu.max", format!("{quota} {period}")));
            } else {
                settings.push(setting(CPU, "cpu.cfs_period_us", period));
                settings.push(setting(CPU, "cpu.cfs_quota_us", quota));
            }
        }
        if let Some(count) = limits.processes {
            settings.push(besides(PIDS, "pids.max", count));
        }
        settings
    }

    fn set(&self, setting: &Setting) -> Result<(), Error> {
        let directory = self.directory(setting.controller);
        let failed = |reason: String| {
            let (file, value) = (setting.file, setting.value.clone());
            Error::Limit { file, value, path: directory.map(Path::to_owned), reason }
        };
        let path = directory.map(|directory| directory.join(setting.file));
        match path.filter(|path| path.exists()) {
            Some(path) => {
                fs::write(path, &setting.value).map_err(|error| failed(error.to_string()))
            }
            None if setting.is_asked_for => {
                Err(failed(format!("this process has no controller {}", setting.controller)))
            }
            None => Ok(()),
        }
    }
}

fn quota(millis: u64) -> (u64, u64) {
    let millis = millis.min(MOST_CPU_MILLIS);
    let share = |period: u64| (millis * (period / 1000), period);
    let (quota, period) = share(PERIOD_MICROS);
    if quota < LEAST_QUOTA_MICROS { share(LONG_PERIOD_MICROS) } else { (quota, period) }
}

fn make_with_parent(directory: &Path, is_v2: bool) -> io::Result<()> {
    let parent = directory.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut tried = 0;
    loop {
        make_one(parent)?;
        if is_v2 {
            enable(parent);
        }
        match make_one(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tried < TRIES => tried += 1,
            made => return made,
        }
    }
}

fn make_one(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests;
