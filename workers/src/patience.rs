//! Patience: how long something may fail, or take, before it is given up, counted from the first
//! failure or look that this process saw. Time before that does not count; pauses between tries do.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use streams::id::JobId;
use tokio::time::Instant;

/// Long enough for a store to be restarted, short enough for a slot to wait.
const BUDGET: Duration = Duration::from_secs(15 * 60);

/// A budget that is longer has no end that anybody waits for, and none that a clock can show.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Since when, by job.
#[derive(Debug)]
pub struct Patience {
    budget: Duration,
    since: Mutex<HashMap<JobId, Instant>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(BUDGET)
    }
}

impl Patience {
    /// Patience for so long.
    pub fn new(budget: Duration) -> Self {
        Self { budget: budget.min(LONGEST), since: Mutex::default() }
    }

    /// Remembers a failure; says whether it has gone on for too long.
    pub(crate) fn is_over(&self, job: JobId) -> bool {
        self.is_over_at(job, Instant::now())
    }

    fn is_over_at(&self, job: JobId, now: Instant) -> bool {
        now >= self.until_at(job, now)
    }

    /// When it is over; it begins now unless it has begun before.
    pub(crate) fn until(&self, job: JobId) -> Instant {
        self.until_at(job, Instant::now())
    }

    fn until_at(&self, job: JobId, now: Instant) -> Instant {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        *since.entry(job).or_insert(now) + self.budget
    }

    /// How long it is.
    pub(crate) fn budget(&self) -> Duration {
        self.budget
    }

    /// Forgets a job's failures: it went well, or it is given up.
    pub(crate) fn forget(&self, job: JobId) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_since_the_first_failure_counts() {
        let patience = Patience::new(Duration::from_secs(60));
        let (job, began) = (JobId::new(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        assert!(!patience.is_over_at(job, after(600)), "nobody has tried before");
        assert!(!patience.is_over_at(job, after(659)));
        assert!(patience.is_over_at(job, after(660)));
        patience.forget(job);
        assert!(!patience.is_over_at(job, after(661)));
    }
}
