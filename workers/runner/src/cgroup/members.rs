//! Who is in a group, and how all of it is ended. Groups that the agent made inside count as well.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::{FREEZER, UNIFIED};
use crate::Cgroup;

/// How long freezing may take; what is in the kernel's hands freezes when it leaves them.
const FREEZE: Duration = Duration::from_millis(500);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// A group whose processes stand still, for as long as this lives.
#[derive(Debug)]
pub struct Frozen<'a>(&'a Cgroup);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

impl Cgroup {
    /// Everything in it, living or dying.
    pub fn members(&self) -> HashSet<Pid> {
        let mut members = HashSet::new();
        for group in self.directories().flat_map(with_groups_inside) {
            // A group that is gone has nobody in it.
            let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            members.extend(text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)));
        }
        members
    }

    /// Makes everything in it stand still, so that a look finds all and none can be made
    /// meanwhile. It still can be signalled.
    pub fn freeze(&self) -> Frozen<'_> {
        let (file, word) = self.freezing(true);
        let until = Instant::now() + FREEZE;
        if let Some(file) = file
            && fs::write(&file, word).is_ok()
        {
            while !self.stands_still(&file) && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
        }
        Frozen(self)
    }

    /// Kills everything that is in it now.
    pub fn kill(&self) {
        let directory = match self {
            Self::V2 { path } => Some(path.as_path()),
            Self::V1 { .. } => self.directory(UNIFIED),
        };
        let at_once = directory.map(|directory| fs::write(directory.join("cgroup.kill"), "1"));
        if !matches!(at_once, Some(Ok(()))) || matches!(self, Self::V1 { .. }) {
            // Either there is no such file, or a process may have left the one hierarchy that
            // has it.
            let _frozen = self.freeze();
            self.signal_all();
        }
        // A supervisor that was killed may have left it frozen, and the dead must run to die.
        self.thaw();
    }

    /// Kills until nobody is in it, and removes it.
    pub fn end(&self, patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        loop {
            let members = self.members();
            if members.is_empty() {
                match self.remove() {
                    // Its last process may be gone for us and not yet for the kernel.
                    Err(_) if Instant::now() < until => {}
                    removed => return removed,
                }
            } else if Instant::now() >= until {
                let text = format!("{} processes in the control group do not end", members.len());
                return Err(io::Error::other(text));
            } else {
                self.kill();
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Removes the empty group, and its parent with the last of its groups.
    fn remove(&self) -> io::Result<()> {
        for directory in self.directories() {
            for group in with_groups_inside(directory) {
                match fs::remove_dir(&group) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            if let Some(parent) = directory.parent() {
                // It fails while another run is in it.
                let _ = fs::remove_dir(parent);
            }
        }
        Ok(())
    }

    /// A number read from a group may belong to another process a moment later, so the handle is
    /// taken first and the number looked at again.
    fn signal_all(&self) {
        let handles: Vec<_> = self
            .members()
            .into_iter()
            .filter(|pid| *pid != getpid())
            .filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
            .collect();
        let still = self.members();
        for (_, handle) in handles.iter().filter(|(pid, _)| still.contains(pid)) {
            // One that has ended meanwhile is what was wanted.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }

    fn thaw(&self) {
        let (file, word) = self.freezing(false);
        if let Some(file) = file {
            // A group that is gone needs no thaw.
            let _ = fs::write(file, word);
        }
    }

    fn freezing(&self, still: bool) -> (Option<PathBuf>, &'static str) {
        match (self, still) {
            (Self::V2 { path }, true) => (Some(path.join("cgroup.freeze")), "1"),
            (Self::V2 { path }, false) => (Some(path.join("cgroup.freeze")), "0"),
            (Self::V1 { .. }, true) => (self.freezer_state(), "FROZEN"),
            (Self::V1 { .. }, false) => (self.freezer_state(), "THAWED"),
        }
    }

    fn freezer_state(&self) -> Option<PathBuf> {
        Some(self.directory(FREEZER)?.join("freezer.state"))
    }

    fn stands_still(&self, file: &Path) -> bool {
        match self {
            Self::V2 { .. } => self.counter("", "cgroup.events", "frozen") == Some(1),
            Self::V1 { .. } => fs::read_to_string(file).is_ok_and(|state| state.trim() == "FROZEN"),
        }
    }
}

/// A directory and those below it, the innermost first.
fn with_groups_inside(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(with_groups_inside(&entry.path()));
        }
    }
    found.push(directory.to_owned());
    found
}
