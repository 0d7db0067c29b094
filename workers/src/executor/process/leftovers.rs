//! Processes of a run whose supervisor is gone. They carry the run's name in their environment,
//! which a child inherits and no other program has; a pid alone is never trusted.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that the runner sets for everything that it starts.
const MARK: &str = "ERRAND_RUN=";

/// Killing takes a moment; something in an uninterruptible wait may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills what carries the run's name until nothing does.
pub(super) fn end(run: &str) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = marked(run)?;
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

fn marked(run: &str) -> io::Result<Vec<Pid>> {
    let wanted = format!("{MARK}{run}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            found.extend(Pid::from_raw(pid));
        }
    }
    Ok(found)
}
