//! Control groups: what holds the processes of a run to its limits, and ends them all at once.
//!
//! A group of one run lies in a parent that belongs to one platform: `errand-<id>/<run>`. Here is
//! how both versions of the kernel's interface are found, limited, joined, emptied and read.
//! Nothing here knows a job, and nothing outside the named groups is ever changed but for what
//! version 2 asks of their ancestors (see `detect.rs`).

mod detect;
mod limit;
mod members;
mod usage;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use detect::{Detected, detect};
pub use limit::Error;
pub use members::Frozen;
pub use usage::Usage;

use crate::Cgroup;

const MEMORY: &str = "memory";
const CPU: &str = "cpu";
const PIDS: &str = "pids";
const FREEZER: &str = "freezer";
/// The hierarchy of version 2 on a machine whose controllers are those of version 1.
const UNIFIED: &str = "unified";

/// What statfs says of the two file systems.
const MAGIC_V1: i64 = 0x0027_e0eb;
const MAGIC_V2: i64 = 0x6367_7270;

impl Cgroup {
    /// Puts the calling process in, and with it everything that it starts from then on.
    pub fn join(&self) -> io::Result<()> {
        for directory in self.directories() {
            fs::write(directory.join("cgroup.procs"), "0").map_err(|error| {
                let group = directory.display();
                io::Error::new(
                    error.kind(),
                    format!("cannot join the control group {group}: {error}"),
                )
            })?;
        }
        Ok(())
    }

    /// Whether this is the group of `run` in the parent of that name. A launch file says where a
    /// group is; this says whether it may be believed.
    pub fn is_of(&self, parent: &str, run: &str) -> bool {
        let own = Path::new(parent).join(run);
        self.directories().all(|directory| {
            let magic = rustix::fs::statfs(directory).map(|system| system.f_type);
            // What is not there can do no harm.
            directory.ends_with(&own)
                && magic.map_or(true, |magic| magic == MAGIC_V1 || magic == MAGIC_V2)
        })
    }

    fn directories(&self) -> impl Iterator<Item = &Path> {
        let (one, many) = match self {
            Self::V2 { path } => (Some(path), None),
            Self::V1 { paths } => (None, Some(paths.values())),
        };
        one.into_iter().chain(many.into_iter().flatten()).map(PathBuf::as_path)
    }

    /// Where the files of a controller are.
    fn directory(&self, controller: &str) -> Option<&Path> {
        match self {
            Self::V2 { path } => Some(path),
            Self::V1 { paths } => paths.get(controller).map(PathBuf::as_path),
        }
    }

    /// Reads `key` of a file of the form `key value`, a line each.
    fn counter(&self, controller: &str, file: &str, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.directory(controller)?.join(file)).ok()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests;
