//! Which user each run has: numbers of a range, none twice at a time.
//!
//! A number is taken by a file of its name in `runs/.ids/`, which holds the run's name; so all
//! workers that share the directory share the numbers. It is free again when the run's directory
//! is gone and no process has it, and not earlier: what lies there belongs to that user. A file
//! that holds no name takes nothing.
//!
//! Other platforms of this machine have runs directories of their own, and maybe the same range:
//! see [`machine`].
//!
//! Thousands of runs may wait for their directories to be removed. So a second file, of the run's
//! name, says where to look; it counts only as far as the first one agrees.

pub(super) mod machine;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::confinement::IdRange;
use super::{leftovers, shared};
use machine::Machine;

/// The directory of the files, below that of the runs.
const DIRECTORY: &str = ".ids";

/// What the names of notes begin with.
const NOTE: &str = "of.";

/// The numbers of a runs directory.
#[derive(Clone)]
pub(super) struct Ids {
    runs: PathBuf,
    directory: PathBuf,
    machine: Machine,
}

impl Ids {
    /// Names the places, by their absolute paths; touches nothing.
    pub(super) fn new(runs: &Path, machine: &Path) -> Self {
        let directory = runs.join(DIRECTORY);
        Self { runs: runs.to_owned(), directory, machine: Machine::new(machine) }
    }

    /// Takes a number for a run whose directory is there; the one that it has already, if any.
    pub(super) fn take(&self, range: IdRange, run: &str) -> io::Result<u32> {
        let _lock = lock(&self.directory)?;
        if let Some(id) = self.noted(run)?.filter(|id| self.is_ours(*id)) {
            return Ok(id);
        }
        // Not from the beginning each time: what a run left in a place for everybody stays its
        // user's, and the next run must not be that user.
        let mix = |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
        let start = run.bytes().fold(0, mix) % range.count;
        let alive = leftovers::users()?;
        let others = self.machine.lock()?;
        for id in (start..range.count).chain(0..start).map(|step| range.first + step) {
            let path = self.file(id);
            if !holder(&path)?.is_empty() || alive.contains(&id) || !self.is_ours(id) {
                continue;
            }
            if others.is_some() {
                self.machine.note(id, &path)?;
            }
            put(&self.note(run), &id.to_string())?;
            put(&path, run)?;
            return Ok(id);
        }
        Err(io::Error::other(format!(
            "all {} users of agents are taken; widen worker.agent_ids",
            range.count
        )))
    }

    /// Whether no other platform has the number.
    fn is_ours(&self, id: u32) -> bool {
        !self.machine.is_taken(id, &self.file(id))
    }

    /// The number that a run has, unless another platform has given it out since.
    pub(super) fn of(&self, run: &str) -> io::Result<Option<u32>> {
        Ok(self.taken_by(run)?.filter(|id| self.is_ours(*id)))
    }

    fn taken_by(&self, run: &str) -> io::Result<Option<u32>> {
        if let Some(id) = self.noted(run)? {
            return Ok(Some(id));
        }
        // Of a worker that made no notes.
        for (path, id) in self.held()? {
            if holder(&path)? == run {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// The same, if it is noted.
    fn noted(&self, run: &str) -> io::Result<Option<u32>> {
        let Ok(id) = holder(&self.note(run))?.parse() else { return Ok(None) };
        Ok((holder(&self.file(id))? == run).then_some(id))
    }

    /// Gives back what a run has, unless the run is still there.
    pub(super) fn free(&self, run: &str) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        let _lock = lock(&self.directory)?;
        let Some(id) = self.taken_by(run)? else { return Ok(()) };
        match leftovers::users()?.contains(&id) || self.is_there(run)? {
            true => Ok(()),
            false => self.give_back(&self.file(id), run),
        }
    }

    /// Gives back what runs have that are no more, whose worker died between two steps, and notes
    /// for other platforms what is left.
    pub(super) fn sweep(&self) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        let _lock = lock(&self.directory)?;
        let alive = leftovers::users()?;
        for (path, id) in self.held()? {
            let run = holder(&path)?;
            if run.is_empty() || !alive.contains(&id) && !self.is_there(&run)? {
                if !alive.contains(&id) && self.is_ours(id) {
                    shared::remove_of(id);
                }
                self.give_back(&path, &run)?;
            }
        }
        if self.machine.lock()?.is_some() {
            for (path, id) in self.held()?.into_iter().filter(|(_, id)| self.is_ours(*id)) {
                self.machine.note(id, &path)?;
            }
        }
        for run in self.runs_of_notes()? {
            if self.noted(&run)?.is_none() && !self.is_there(&run)? {
                remove(&self.note(&run))?;
            }
        }
        Ok(())
    }

    fn give_back(&self, file: &Path, run: &str) -> io::Result<()> {
        remove(file)?;
        remove(&self.note(run))
    }

    fn file(&self, id: u32) -> PathBuf {
        self.directory.join(id.to_string())
    }

    fn note(&self, run: &str) -> PathBuf {
        self.directory.join(format!("{NOTE}{run}"))
    }

    /// Whether a run has a directory. One that is filled is renamed at any moment, so it is
    /// looked for under its first name first.
    fn is_there(&self, run: &str) -> io::Result<bool> {
        Ok(super::partial(&self.runs, run).try_exists()? || self.runs.join(run).try_exists()?)
    }

    /// The files, and the numbers that they stand for.
    fn held(&self) -> io::Result<Vec<(PathBuf, u32)>> {
        let ids = self.names()?.into_iter().filter_map(|name| name.parse().ok());
        Ok(ids.map(|id| (self.file(id), id)).collect())
    }

    fn runs_of_notes(&self) -> io::Result<Vec<String>> {
        let names = self.names()?.into_iter();
        Ok(names.filter_map(|name| Some(name.strip_prefix(NOTE)?.to_owned())).collect())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }
}

/// Makes a directory; others who lock it wait until this is dropped.
fn lock(directory: &Path) -> io::Result<File> {
    super::make(directory)?;
    let directory = File::open(directory)?;
    flock(&directory, FlockOperation::LockExclusive)?;
    Ok(directory)
}

/// Writes a file. Half a name would hold a number for nobody.
fn put(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What a file holds; empty when there is none.
fn holder(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        held => held,
    }
}

#[cfg(test)]
mod tests;
