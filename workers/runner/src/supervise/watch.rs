//! Decides when a run has to end: the limit, a request, a lease that ran out.
//!
//! Every span is measured on this process's monotonic clock, so a step of the wall clock changes
//! nothing and a process that was paused meets its limit at the first look.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use errand_runner::{Launch, RunDir, run_dir};
use jiff::Timestamp;

use crate::limit;
use crate::report::{self, Invoked};

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
    /// The adapter never became ready.
    NotStarted,
    /// `stop`, with the text inside.
    Asked(String),
    /// Nobody has touched `lease` for too long.
    Lease,
}

/// The clocks of one run.
pub(super) struct Watch<'a> {
    run: &'a RunDir,
    launch: &'a Launch,
    started: Instant,
    invoked_at: Option<Timestamp>,
    limit: Option<Instant>,
    reported: Option<Instant>,
    lease: (Option<(u64, i64, i64)>, Instant),
}

impl<'a> Watch<'a> {
    pub(super) fn new(run: &'a RunDir, launch: &'a Launch) -> Self {
        let now = Instant::now();
        Self {
            run,
            launch,
            started: now,
            invoked_at: None,
            limit: None,
            reported: None,
            lease: (None, now),
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
        self.lease_is_over(now).then_some(End::Lease)
    }

    fn note_invocation(&mut self, now: Instant) {
        if self.limit.is_some() {
            return;
        }
        let Ok(invoked) = run_dir::read_json::<Invoked>(&report::invoked_path(self.run)) else {
            return;
        };
        let limit = limit::duration(self.launch);
        let since = Duration::try_from(limit::now().duration_since(invoked.at)).unwrap_or_default();
        self.invoked_at = Some(invoked.at);
        self.limit = Some(now + limit.saturating_sub(since));
    }

    fn note_report(&mut self, now: Instant) {
        if self.reported.is_none() && report::report_path(self.run).exists() {
            self.reported = Some(now);
        }
    }

    fn lease_is_over(&mut self, now: Instant) -> bool {
        let Some(seconds) = self.launch.lease_seconds else {
            return false;
        };
        // A renewed lease is a new file; its times are compared for being the same only.
        let seen = fs::metadata(self.run.lease())
            .ok()
            .map(|lease| (lease.ino(), lease.mtime(), lease.mtime_nsec()));
        if seen != self.lease.0 {
            self.lease = (seen, now);
        }
        now.duration_since(self.lease.1).as_secs_f64() >= seconds
    }
}
