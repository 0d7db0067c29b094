//! Which user each run has: numbers of a range, none twice at a time.
//!
//! A number is taken by a file of its name in `runs/.ids/`, which holds the run's name; so all
//! workers that share the directory share the numbers. It is free again when the run's directory
//! is gone and no process has it, and not earlier: what lies there belongs to that user. A file
//! that holds no name takes nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::confinement::IdRange;
use super::leftovers;

/// The directory of the files, below that of the runs.
const DIRECTORY: &str = ".ids";

/// The numbers of a runs directory.
#[derive(Clone)]
pub(super) struct Ids {
    runs: PathBuf,
    directory: PathBuf,
}

impl Ids {
    /// Names the place; touches nothing.
    pub(super) fn new(runs: &Path) -> Self {
        Self { runs: runs.to_owned(), directory: runs.join(DIRECTORY) }
    }

    /// Takes a number for a run whose directory is there; the one that it has already, if any.
    pub(super) fn take(&self, range: IdRange, run: &str) -> io::Result<u32> {
        let _lock = self.lock()?;
        if let Some(id) = self.of(run)? {
            return Ok(id);
        }
        // Not from the beginning each time: what a run left in a place for everybody stays its
        // user's, and the next run must not be that user.
        let mix = |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
        let start = run.bytes().fold(0, mix) % range.count;
        let alive = leftovers::users()?;
        for id in (start..range.count).chain(0..start).map(|step| range.first + step) {
            let path = self.directory.join(id.to_string());
            if !holder(&path)?.is_empty() || alive.contains(&id) {
                continue;
            }
            if let Err(error) = fs::write(&path, run) {
                // Half a name would hold the number for nobody.
                let _ = fs::remove_file(&path);
                return Err(error);
            }
            return Ok(id);
        }
        Err(io::Error::other(format!(
            "all {} users of agents are taken; widen worker.agent_ids",
            range.count
        )))
    }

    /// The number that a run has.
    pub(super) fn of(&self, run: &str) -> io::Result<Option<u32>> {
        for (path, id) in self.held()? {
            if holder(&path)? == run {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Gives back what a run has, unless the run is still there.
    pub(super) fn free(&self, run: &str) -> io::Result<()> {
        self.free_where(|holder| holder == run)
    }

    /// Gives back what runs have that are no more: their worker died between two steps.
    pub(super) fn sweep(&self) -> io::Result<()> {
        self.free_where(|_| true)
    }

    fn free_where(&self, is_meant: impl Fn(&str) -> bool) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let alive = leftovers::users()?;
        for (path, id) in self.held()? {
            let holder = holder(&path)?;
            let is_over = || Ok::<_, io::Error>(!alive.contains(&id) && !self.is_there(&holder)?);
            if holder.is_empty() || (is_meant(&holder) && is_over()?) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Whether a run has a directory. One that is filled is renamed at any moment, so it is
    /// looked for under its first name first.
    fn is_there(&self, run: &str) -> io::Result<bool> {
        Ok(super::partial(&self.runs, run).try_exists()? || self.runs.join(run).try_exists()?)
    }

    /// The files, and the numbers that they stand for.
    fn held(&self) -> io::Result<Vec<(PathBuf, u32)>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut held = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let id = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            held.extend(id.map(|id| (path, id)));
        }
        Ok(held)
    }

    /// Other workers wait until it is dropped.
    fn lock(&self) -> io::Result<File> {
        super::make(&self.directory)?;
        let directory = File::open(&self.directory)?;
        flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    }
}

/// The run that a file names; empty when there is none.
fn holder(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        held => held,
    }
}

#[cfg(test)]
mod tests;
