//! Claims that are watched from elsewhere: each counts as lost when its revision did not change for
//! a time on the clock of whoever watches, so that no two clocks are ever compared.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use streams::id::JobId;
use tokio::time::Instant;

/// What was seen of claims, and since when.
pub(crate) struct Unchanged {
    lost_after: Duration,
    seen: Mutex<HashMap<JobId, (u64, Instant)>>,
}

impl Unchanged {
    /// Has seen nothing yet. A claim is lost when it did not change for so long.
    pub(crate) fn new(lost_after: Duration) -> Self {
        Self { lost_after, seen: Mutex::default() }
    }

    /// How long that is.
    pub(crate) const fn lost_after(&self) -> Duration {
        self.lost_after
    }

    /// Notes the revision of a claim; says whether it has stood for long enough.
    pub(crate) fn is_lost(&self, job: JobId, revision: u64) -> bool {
        let (mut seen, now) = (self.seen(), Instant::now());
        let (known, since) = seen.entry(job).or_insert((revision, now));
        if *known != revision {
            (*known, *since) = (revision, now);
        }
        now.duration_since(*since) >= self.lost_after
    }

    /// Forgets a claim.
    pub(crate) fn forget(&self, job: JobId) {
        self.seen().remove(&job);
    }

    /// Forgets all but the claims of these jobs.
    pub(crate) fn keep_only(&self, jobs: &HashSet<JobId>) {
        self.seen().retain(|job, _| jobs.contains(job));
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<JobId, (u64, Instant)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
