//! Decides when a run has to end: the limit, silence, a request, a lease that ran out.
//!
//! Every span is measured on a monotonic clock, so a step of the wall clock changes
//! nothing and a process that was paused meets its limit at the first look.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use errand_runner::{Launch, Moment, RunDir, output, run_dir};
use jiff::Timestamp;

use crate::limit;
use crate::report;

/// Fabric gives an adapter 90 s to start.
const START_BUDGET: Duration = Duration::from_secs(95);

/// After the invocation, Fabric gives an adapter 10 s to stop and 2 s to exit.
const STOP_BUDGET: Duration = Duration::from_secs(15);

/// Why the supervisor stops waiting.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// The host has ended, or has reported and does not end.
    Host,
    /// The time limit.
    Limit,
    /// The agent has written nothing for so many seconds.
    Idle(f64),
    /// The adapter never became ready.
    NotStarted,
    /// `stop`, with the text inside.
    Asked(String),
    /// Nobody has renewed `lease` for too long.
    Lease,
}

/// The clocks of one run.
pub(super) struct Watch<'a> {
    run: &'a RunDir,
    launch: &'a Launch,
    started: Instant,
    started_at: Timestamp,
    invoked_at: Option<Timestamp>,
    limit: Option<Instant>,
    reported: Option<Instant>,
    lease: Moment,
    output: Still<[Option<Stamp>; 3]>,
}

/// A file as it was seen: it is another one, longer, or written to, or it is the same.
type Stamp = (u64, u64, i64, i64);

/// Something that is looked at again and again, and since when it is the same.
struct Still<T> {
    seen: T,
    since: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(run: &'a RunDir, launch: &'a Launch) -> Self {
        let now = Instant::now();
        Self {
            run,
            launch,
            started: now,
            started_at: limit::now(),
            invoked_at: None,
            limit: None,
            reported: None,
            lease: Moment::now(),
            output: Still { seen: [None; 3], since: now },
        }
    }

    /// When the invocation began.
    pub(super) fn invoked_at(&self) -> Option<Timestamp> {
        self.invoked_at
    }

    /// The reason in `stop`. Whatever stands there under that name asks for the end.
    fn asked_to_stop(&self) -> Option<String> {
        let stop = self.run.stop();
        stop.symlink_metadata().ok()?;
        let reason = run_dir::read_regular(&stop).unwrap_or_default();
        Some(String::from_utf8_lossy(&reason).into_owned())
    }

    /// Looks at everything once.
    pub(super) fn look(&mut self) -> Option<End> {
        let now = Instant::now();
        self.note_invocation(now);
        self.note_report(now);
        let asked = self.asked_to_stop();
        if let Some(reported) = self.reported {
            // How it ended is known; only the tidying up is left.
            let over = asked.is_some() || now.duration_since(reported) >= STOP_BUDGET;
            return over.then_some(End::Host);
        }
        if let Some(reason) = asked {
            return Some(End::Asked(reason.trim().to_owned()));
        }
        match self.limit {
            Some(limit) if now >= limit => return Some(End::Limit),
            None if now.duration_since(self.started) >= START_BUDGET => {
                return Some(End::NotStarted);
            }
            _ => {}
        }
        if self.lease_is_over() {
            return Some(End::Lease);
        }
        self.launch
            .idle_timeout_seconds
            .filter(|seconds| self.is_idle(*seconds, now))
            .map(End::Idle)
    }

    /// The agent can remove the file and write it anew. The invocation was therefore never before
    /// the start nor after this first look, and whatever is said later, the limit strikes no later
    /// than it would after the longest start.
    fn note_invocation(&mut self, now: Instant) {
        if self.limit.is_some() {
            return;
        }
        let Some(invoked) = report::read_invoked(self.run) else {
            return;
        };
        let seen_at = limit::now();
        // Not `clamp`, which panics should the wall clock have been set back.
        let at = invoked.at.max(self.started_at).min(seen_at);
        let limit = limit::duration(self.launch);
        let since = Duration::try_from(seen_at.duration_since(at)).unwrap_or_default();
        self.invoked_at = Some(at);
        let latest = self.started + START_BUDGET + limit;
        self.limit = Some(latest.min(now + limit.saturating_sub(since)));
        // What came before the invocation was the adapter's, and so was the silence.
        self.output.since = now;
    }

    fn note_report(&mut self, now: Instant) {
        if self.reported.is_none() && report::report_path(self.run).exists() {
            self.reported = Some(now);
        }
    }

    /// It counts when the claim was held, and not when that was written: a worker that was paused
    /// in between may have lost it.
    fn lease_is_over(&mut self) -> bool {
        let Some(seconds) = self.launch.lease_seconds else {
            return false;
        };
        self.lease = self.run.lease_renewed().unwrap_or(self.lease);
        self.lease.elapsed().as_secs_f64() >= seconds
    }

    /// Looks at the files and not at what was read of them: a supervisor that was paused sees at
    /// its first look that the agent has written meanwhile.
    fn is_idle(&mut self, seconds: f64, now: Instant) -> bool {
        let files = [output::stdout, output::stderr, output::adapter_stderr];
        let still = self.output.look(files.map(|path| stamp(&path(self.run))), now);
        self.invoked_at.is_some() && still >= seconds
    }
}

impl<T: PartialEq> Still<T> {
    /// Takes a look; says for how many seconds nothing has changed.
    fn look(&mut self, seen: T, now: Instant) -> f64 {
        if seen != self.seen {
            (self.seen, self.since) = (seen, now);
        }
        now.duration_since(self.since).as_secs_f64()
    }
}

/// Times are compared for being the same only.
fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests;
