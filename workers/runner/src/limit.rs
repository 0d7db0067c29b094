//! The time limit of a run, as the supervisor, the host and Fabric must all understand it.

use std::time::Duration;

use errand_runner::Launch;
use jiff::{SignedDuration, Timestamp};

/// Ten years; longer limits are no limits, and would overflow a clock.
const LONGEST_SECONDS: f64 = 315_360_000.0;

/// The limit in seconds: the job's, or the agent's own `runtime.timeout_seconds` when shorter.
pub(crate) fn seconds(launch: &Launch) -> f64 {
    let own = launch.agent["runtime"]["timeout_seconds"].as_f64();
    own.unwrap_or(f64::INFINITY).min(launch.timeout_seconds).clamp(0.001, LONGEST_SECONDS)
}

/// The same as a duration.
pub(crate) fn duration(launch: &Launch) -> Duration {
    Duration::from_secs_f64(seconds(launch))
}

/// A span that a clock can be moved by.
pub(crate) fn bounded(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_SECONDS))
}

/// What Fabric is told, so that it never strikes before the supervisor does. Fabric gives the
/// adapter ten seconds less, or half when that is more: with these numbers, exactly the limit.
pub(crate) fn for_fabric(launch: &Launch) -> f64 {
    let seconds = seconds(launch);
    if seconds >= 10.0 { seconds + 10.0 } else { seconds * 2.0 }
}

/// The moment at which a run that begins at `start` meets its limit.
pub(crate) fn deadline(start: Timestamp, launch: &Launch) -> Timestamp {
    SignedDuration::try_from(duration(launch))
        .ok()
        .and_then(|limit| start.checked_add(limit).ok())
        .unwrap_or(Timestamp::MAX)
}

/// Now, in the microseconds that every timestamp of ours has.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
