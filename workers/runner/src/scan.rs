//! Looks for the run's secrets in what it left behind, once nothing of the agent is left.
//!
//! What an agent wrote is a result and is not changed; it is only said where a secret is. Regular
//! files are read in pieces, by the automaton that masks the log; names and what links say count
//! too, links are not followed. Encodings that are not masked are not found either.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use errand_runner::names::{NAMED, Names};
use errand_runner::{Launch, RunDir, SecretsFound, run_dir};

use crate::agent_dirs::AgentDirs;
use crate::log::Log;
use crate::mask::Mask;

/// How long the search may keep the end of a run waiting: after an end of its own, and after one
/// that somebody waits for.
const PATIENCE: Duration = Duration::from_secs(60);
const HASTE: Duration = Duration::from_secs(10);

/// Bytes of the paths of directories that wait for their turn.
const AHEAD_BYTES: usize = 16 * 1024 * 1024;

/// Where a post-run action leaves its results; a run that has this variable has no others.
const RESULTS: &str = "ERRAND_RESULTS";

/// Searches everything that becomes a result, and says in the log what was found.
pub(crate) fn run(
    log: &mut Log,
    run: &RunDir,
    launch: &Launch,
    dirs: &AgentDirs,
    hurry: bool,
) -> SecretsFound {
    let mut found = SecretsFound::default();
    if log.mask().is_empty() {
        return found;
    }
    let asked_before = run.stop().symlink_metadata().is_ok();
    let mut search = Search {
        mask: log.mask(),
        until: Instant::now() + if hurry { HASTE } else { PATIENCE },
        asked: &|| !asked_before && run.stop().symlink_metadata().is_ok(),
        ahead_bytes: AHEAD_BYTES,
        is_whole: true,
    };
    let base = run.base();
    let mut said = Vec::new();
    let mut look = |what: &str, root: &Path| {
        let mut paths = Vec::new();
        if run_dir::is_inside(&base, root) {
            // Names first: that is quick, and nothing may be told of them before.
            found.names |= search.names(root);
            paths = search.directory(root);
        }
        if let Some(first) = paths.first() {
            let holders = match paths.len() - 1 {
                0 => format!("{first} holds"),
                more => format!("{first} and {more} more hold"),
            };
            said.push(format!("{what}: {holders} the value of a secret: the result is marked."));
        }
        paths
    };
    match launch.env.get(RESULTS) {
        Some(results) => found.results = look("results", Path::new(results)),
        None => {
            found.workdir = look("output_workdir", &dirs.workspace);
            found.artifacts = look("output_artifacts", &dirs.artifacts);
        }
    }
    found.unsearched = !search.is_whole;
    if found.unsearched {
        said.push("The results were not searched for secrets to their end.".to_owned());
    }
    for sentence in said {
        log.platform(&sentence);
    }
    found
}

struct Search<'a> {
    mask: &'a Mask,
    until: Instant,
    /// Whether somebody has asked for the end meanwhile.
    asked: &'a dyn Fn() -> bool,
    /// Bytes that the paths of directories ahead may have.
    ahead_bytes: usize,
    /// Whether everything was looked at.
    is_whole: bool,
}

impl Search<'_> {
    /// Paths below a directory that hold a secret, for people; sorted. With the last that is
    /// named the search ends.
    fn directory(&mut self, root: &Path) -> Vec<String> {
        let mut found = Names::default();
        self.each(root, |search, path, shown| {
            if search.holds(path)? {
                // Its own secrets are masked before anything is cut.
                found.push(&search.mask.bytes(shown));
            }
            Ok(found.named.len() < NAMED)
        });
        found.named.sort();
        found.named
    }

    /// Whether a path below a directory holds a secret, or may do so.
    fn names(&mut self, root: &Path) -> bool {
        let mut any = false;
        self.each(root, |search, _, shown| {
            any = search.mask.finds_in(shown)?;
            Ok(!any)
        });
        any || !self.is_whole
    }

    /// Visits every entry below a directory, with its path from there, until there is no more time
    /// or `visit` says that it is enough.
    fn each(
        &mut self,
        root: &Path,
        mut visit: impl FnMut(&Self, &Path, &[u8]) -> io::Result<bool>,
    ) {
        let mut dirs = vec![root.to_owned()];
        let mut ahead_bytes = root.as_os_str().len();
        while let Some(dir) = dirs.pop() {
            ahead_bytes -= dir.as_os_str().len();
            let Ok(entries) = fs::read_dir(dir) else {
                self.is_whole = false;
                continue;
            };
            for entry in entries.flatten() {
                if self.is_over() {
                    self.is_whole = false;
                    return;
                }
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let length = path.as_os_str().len();
                    if ahead_bytes + length <= self.ahead_bytes {
                        ahead_bytes += length;
                        dirs.push(path.clone());
                    } else {
                        self.is_whole = false;
                    }
                }
                let shown = path.strip_prefix(root).unwrap_or(&path).as_os_str().as_bytes();
                match visit(self, &path, shown) {
                    Ok(true) => {}
                    Ok(false) => return,
                    // What cannot be read cannot be saved either, which is said there.
                    Err(_) => self.is_whole = false,
                }
            }
        }
    }

    fn holds(&self, path: &Path) -> io::Result<bool> {
        let kind = path.symlink_metadata()?.file_type();
        if self.mask.finds_in(path.file_name().unwrap_or_default().as_bytes())? {
            Ok(true)
        } else if kind.is_symlink() {
            self.mask.finds_in(fs::read_link(path)?.as_os_str().as_bytes())
        } else if kind.is_file() {
            self.mask.finds_in(Patient { file: run_dir::open_regular(path)?, search: self })
        } else {
            Ok(false)
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until || (self.asked)()
    }
}

/// A file that is read only as long as there is time.
struct Patient<'a> {
    file: File,
    search: &'a Search<'a>,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.search.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests;
