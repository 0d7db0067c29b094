//! Moves what a script wrote on stdout and stderr, and what an adapter wrote on its stderr, into
//! the artifacts, once nothing of the agent is left. The supervisor does it, or, when that died, the
//! worker.
//!
//! Until then it lies outside the base, so an agent that empties its artifacts directory empties
//! neither the log nor the result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::run_dir::{self, RunDir};

/// What was moved, and what went wrong.
#[derive(Debug, Default)]
pub struct Kept {
    /// As Fabric lists artifacts.
    pub artifacts: Vec<Value>,
    /// In words for the log.
    pub problems: Vec<String>,
}

/// What a script wrote on stdout so far.
pub fn stdout(run: &RunDir) -> PathBuf {
    run.io().join("agent.stdout")
}

/// What a script wrote on stderr so far.
pub fn stderr(run: &RunDir) -> PathBuf {
    run.io().join("agent.stderr")
}

/// A second name of the adapter's stderr, which Fabric deletes under its first one.
pub fn adapter_stderr(run: &RunDir) -> PathBuf {
    run.io().join("adapter.stderr")
}

/// Moves the spools into the artifacts directory. Fabric keeps an adapter's stderr itself, but
/// only when the exchange went well: `is_in_result` says so.
pub fn keep(run: &RunDir, artifacts: &Path, is_in_result: bool) -> Kept {
    let mut kept = Kept::default();
    let adapter = adapter_stderr(run);
    let has_words = fs::metadata(&adapter).is_ok_and(|file| file.len() > 0);
    let adapter = (has_words && !is_in_result).then_some(("stderr", adapter));
    let spools = [("stdout", stdout(run)), ("stderr", stderr(run))];
    for (name, spool) in spools.into_iter().filter(|(_, spool)| spool.exists()).chain(adapter) {
        match move_in(&spool, &run.base(), artifacts, name) {
            Ok(path) => kept.artifacts.push(json!({
                "name": format!("agent_{name}"),
                "kind": "log",
                "path": path,
                "media_type": "text/plain",
            })),
            Err(error) => kept.problems.push(format!(
                "Could not keep the agent's {name} in {}: {error}",
                artifacts.display()
            )),
        }
    }
    kept
}

fn move_in(spool: &Path, base: &Path, artifacts: &Path, name: &str) -> io::Result<PathBuf> {
    run_dir::make_inside(base, artifacts).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => io::Error::other(
            "the agent has replaced the directory by a link out of its base directory",
        ),
        _ => error,
    })?;
    let target = free_name(artifacts, name);
    fs::rename(spool, &target)?;
    Ok(target)
}

/// `stdout.txt`, unless the agent has written a file of that name itself.
fn free_name(artifacts: &Path, name: &str) -> PathBuf {
    let mut target = artifacts.join(format!("{name}.txt"));
    let mut number = 1;
    while target.symlink_metadata().is_ok() {
        target = artifacts.join(format!("{name}.{number}.txt"));
        number += 1;
    }
    target
}
