//! Patience: how long something may fail before it is given up, counted from the first failure
//! that this process saw. Time during which nobody tried does not count.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use streams::id::JobId;
use tokio::time::Instant;

/// Long enough for a store to be restarted, short enough for a slot to wait.
const BUDGET: Duration = Duration::from_secs(15 * 60);

/// Failures so far, by job.
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
        Self { budget, since: Mutex::default() }
    }

    /// Remembers a failure; says whether it has gone on for too long.
    pub(crate) fn is_over(&self, job: JobId) -> bool {
        self.is_over_at(job, Instant::now())
    }

    fn is_over_at(&self, job: JobId, now: Instant) -> bool {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        now.duration_since(*since.entry(job).or_insert(now)) >= self.budget
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
