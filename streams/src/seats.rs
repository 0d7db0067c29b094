//! Seats: which jobs of a workspace may run where it has a limit of running jobs. One record a
//! workspace, in the bucket `seats`. Who takes a seat and who loses it is in `workers`.

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::subject;

/// The jobs that have a seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// Format version; 1.
    pub v: u32,
    /// The jobs, in the order in which they came.
    pub jobs: Vec<JobId>,
}

impl Default for Seated {
    fn default() -> Self {
        Self { v: 1, jobs: Vec::new() }
    }
}

/// The key of a workspace. Keys of buckets know fewer characters than subjects do, and one that is
/// a job's id would go with that job.
pub fn key(workspace: &str) -> String {
    let token = subject::escape(workspace);
    format!("w.{}", token.replace('%', "=").replace('@', "=40").replace('+', "=2B"))
}

#[cfg(test)]
mod tests;
