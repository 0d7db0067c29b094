//! `stderr.txt` files that a failed agent left in its artifacts, as far as the log lacks them.
//!
//! What the agent's own process and its adapter write on stderr is in the log line by line
//! already; these are of programs that keep their stderr to themselves. The agent could put
//! anything under such a name, so only regular files are read, and of these the end.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use errand_runner::{LogStream, run_dir};

use crate::log::{Follower, Log};
use crate::tail::whole_lines;

const NAME: &str = "stderr.txt";

/// So many files, and so much of the end of each.
const FILES: usize = 5;
const BYTES: u64 = 1024 * 1024;

/// A tree with more entries than this is not searched to its end.
const ENTRIES: usize = 100_000;

/// Logs what is under `artifacts`, but for the files that the log has already.
pub(super) fn log(log: &mut Log, base: &Path, artifacts: &Path, known: &[PathBuf]) {
    if !run_dir::is_inside(base, artifacts) {
        return;
    }
    let mut found = find(artifacts);
    found.retain(|path| !known.contains(path));
    if found.len() > FILES {
        log.platform(&format!(
            "Found {} agent stderr files; the first {FILES} follow.",
            found.len()
        ));
    }
    for path in found.iter().take(FILES) {
        let shown = path.strip_prefix(artifacts).unwrap_or(path).display();
        if let Err(error) = log_end(log, path, &shown.to_string()) {
            log.platform(&format!("Could not read agent stderr at {shown}: {error}."));
        }
        log.flush();
    }
}

/// Every entry of the name, in order; links are not followed.
fn find(artifacts: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![artifacts.to_owned()];
    let mut seen = 0;
    while let Some(dir) = dirs.pop().filter(|_| seen < ENTRIES) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(ENTRIES - seen) {
            seen += 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(entry.path());
            } else if entry.file_name() == NAME {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn log_end(log: &mut Log, path: &Path, shown: &str) -> io::Result<()> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let (bytes, omitted) = end_of(run_dir::open_regular(path)?)?;
    if bytes.is_empty() && omitted == 0 {
        log.platform(&format!("Agent stderr at {shown} was empty."));
        return Ok(());
    }
    let which = match omitted {
        0 => String::new(),
        _ => format!(", last {} bytes; {omitted} earlier bytes omitted", bytes.len()),
    };
    log.platform(&format!("Agent stderr ({shown}{which}):"));
    let mut lines = Follower::new(path.to_owned(), LogStream::Stderr);
    lines.take(&bytes, log);
    lines.end(log);
    Ok(())
}

/// The last whole lines: half a line might begin with half a secret, which no mask knows.
fn end_of(mut file: File) -> io::Result<(Vec<u8>, u64)> {
    let size = file.metadata()?.len();
    let start = size.saturating_sub(BYTES);
    // One byte more shows whether a line begins right there.
    file.seek(SeekFrom::Start(start.saturating_sub(1)))?;
    let mut bytes = Vec::new();
    file.take(BYTES + 1).read_to_end(&mut bytes)?;
    if start > 0 {
        bytes = whole_lines(&bytes).to_vec();
    }
    let omitted = size.saturating_sub(bytes.len() as u64);
    Ok((bytes, omitted))
}
