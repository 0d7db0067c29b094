//! Which user each run has: numbers of a range, none twice at a time.
//!
//! A number is taken by a file of its name in `runs/.ids/`, which holds the run's name; so all
//! workers that share the directory share the numbers. It is free again when the run's directory
//! is gone, and not earlier: what lies there belongs to that user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::confinement::IdRange;

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
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let id = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let Some(id) = id
                && fs::read_to_string(&path)? == run
            {
                return Ok(id);
            }
        }
        // Not from the beginning each time: what a run left in a place for everybody stays its
        // user's, and the next run must not be that user.
        let mix = |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
        let start = run.bytes().fold(0, mix) % range.count;
        for id in (start..range.count).chain(0..start).map(|step| range.first + step) {
            let path = self.directory.join(id.to_string());
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    file.write_all(run.as_bytes())?;
                    return Ok(id);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!(
            "all {} users of agents are taken; widen worker.agent_ids",
            range.count
        )))
    }

    /// Gives back what a run has.
    pub(super) fn free(&self, run: &str) -> io::Result<()> {
        self.remove_where(|holder| holder == run)
    }

    /// Gives back what runs have that are no more: their worker died between two steps.
    pub(super) fn sweep(&self, partial: impl Fn(&str) -> PathBuf) -> io::Result<()> {
        self.remove_where(|holder| {
            let is_there = self.runs.join(holder).exists() || partial(holder).exists();
            holder.is_empty() || !is_there
        })
    }

    fn remove_where(&self, is_free: impl Fn(&str) -> bool) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if is_free(&fs::read_to_string(&path)?) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Other workers wait until it is dropped.
    fn lock(&self) -> io::Result<File> {
        super::make(&self.directory)?;
        let directory = File::open(&self.directory)?;
        flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    }
}

#[cfg(test)]
mod tests;
