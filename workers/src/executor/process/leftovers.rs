//! Processes of a run whose supervisor is gone. They carry the run's name in their environment,
//! which a child inherits and no other program has, or they are of the run's own user; a pid alone
//! is never trusted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that the runner sets for everything that it starts.
const MARK: &str = "ERRAND_RUN=";

/// Killing takes a moment; something in an uninterruptible wait may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills what carries the run's name or is its user's until nothing is.
pub(super) fn end(run: &str, user: Option<u32>) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = find(run, user)?;
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(io::Error::other(format!(
                "{} processes of the run do not end",
                found.len()
            )));
        }
        for pid in found {
            // It may be gone by now; the next round looks again.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn find(run: &str, user: Option<u32>) -> io::Result<Vec<Pid>> {
    let wanted = format!("{MARK}{run}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let process = format!("/proc/{pid}");
        let environment = fs::read(format!("{process}/environ")).unwrap_or_default();
        let marked = environment.split(|byte| *byte == 0).any(|it| it == wanted.as_bytes());
        let owned = || fs::metadata(&process).is_ok_and(|meta| Some(meta.uid()) == user);
        if marked || owned() {
            found.extend(Pid::from_raw(pid));
        }
    }
    Ok(found)
}
