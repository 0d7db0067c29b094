//! Looking at processes, and waiting for what must come about.

use std::fs;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until a condition holds; panics with `what` when it does not within `within`.
pub async fn eventually<T, Fut>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> Fut,
) -> T
where
    Fut: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a process lives (a zombie does not).
pub fn is_running(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Processes that have exactly this argument.
pub fn running_with_argument(argument: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        if command.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()) {
            found.push(pid);
        }
    }
    found
}
