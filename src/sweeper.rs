//! The sweeper: does again what a process that died may have left undone, removes messages of
//! jobs that were finished long enough ago, and what was begun in the object store and left.
//!
//! Each thing that it does may be done any number of times, also by several sweepers at once.

mod unfinished;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use streams::broker::{self, Broker};
use streams::claim::Decision;
use tokio_util::sync::CancellationToken;
use workers::control::{settle_cancel, settle_overdue};
use workers::ends::Ends;
use workers::store::Store;

use crate::config::Retention;
use crate::records::{self, Job, Records};
use crate::{removal, submission};

/// How often it looks.
const LOOK: Duration = Duration::from_secs(5);

/// How often it looks for jobs that were not started in time: their owners wait for the answer.
const LOOK_FOR_OVERDUE: Duration = Duration::from_secs(1);

/// A submission is published right after its record; only one that is older was forgotten.
const FORGOTTEN: SignedDuration = SignedDuration::from_secs(5);

/// Jobs that are taken on at one look, of each kind.
const AT_ONCE: u32 = 100;

/// How often so many when they are to be ended.
const ENDING_PAGES: usize = 100;

/// What it works on.
pub struct Sweeper {
    /// The records.
    pub records: Records,
    /// The queue.
    pub broker: Arc<dyn Broker>,
    /// The object store.
    pub store: Store,
    /// How long messages stay.
    pub retention: Retention,
}

/// Why a look was broken off; the next one begins anew.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Records(#[from] records::Error),
    #[error(transparent)]
    Broker(#[from] broker::Error),
    #[error(transparent)]
    Submission(#[from] submission::Error),
    #[error(transparent)]
    Removal(#[from] removal::Error),
}

impl Sweeper {
    /// Looks again and again until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let age = Duration::from_secs(self.retention.unfinished_seconds);
        let store = unfinished::sweep(&self.store, age);
        let looking = async { tokio::join!(self.look_for_all(), self.look_for_overdue(), store) };
        tokio::select! {
            () = stop.cancelled() => {}
            ((), (), ()) = looking => {}
        }
    }

    async fn look_for_all(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.look().await;
        }
    }

    async fn look_for_overdue(&self) {
        loop {
            tokio::time::sleep(LOOK_FOR_OVERDUE).await;
            told("end jobs that were not started in time", self.settle_overdue().await);
        }
    }

    /// One failure does not keep the other kinds of work from being done.
    async fn look(&self) {
        let outcomes = [
            ("publish submissions", self.publish_forgotten().await),
            ("settle cancelled jobs", self.settle_cancelled().await),
            ("finish deletions", self.finish_deletions().await),
            ("remove old messages", self.remove_old().await),
        ];
        for (what, outcome) in outcomes {
            told(what, outcome);
        }
    }

    /// Records of which no fact was seen: their server died between commit and publication.
    async fn publish_forgotten(&self) -> Result<(), Error> {
        let before = Timestamp::now() - FORGOTTEN;
        for job in self.records.jobs().unpublished(before, AT_ONCE).await? {
            submission::submit(&*self.broker, &self.store, &job).await?;
            tracing::info!(job.id = %job.id, "published a submission that was not seen yet");
        }
        Ok(())
    }

    /// Jobs that are to be cancelled and that no worker has begun with.
    ///
    /// The API decides in `ends` first and records it then. A server that died between the two
    /// left a job that is not listed here: the step that comes to it reads `ends` and ends it.
    async fn settle_cancelled(&self) -> Result<(), Error> {
        let ends = Ends::new(Arc::clone(&self.broker));
        let mut last = None;
        // A job stays listed until it has ended: those in front must not hide the others.
        for _ in 0..ENDING_PAGES {
            let jobs = self.records.jobs().cancelling(last.as_ref(), AT_ONCE).await?;
            for Job { id, workspace, .. } in &jobs {
                // It is decided, unless the queue lost its keys.
                if ends.decide(*id, Decision::Cancel, "sweeper").await? == Decision::Cancel {
                    settle_cancel(&self.broker, workspace, *id).await?;
                }
            }
            last = jobs.into_iter().last();
            if last.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Jobs whose agent was not started in time. Whether it was is decided by the claim: a job
    /// that was started and is not known to be stays listed here, and nothing comes of it.
    async fn settle_overdue(&self) -> Result<(), Error> {
        let (now, mut last) = (Timestamp::now(), None);
        for _ in 0..ENDING_PAGES {
            let jobs = self.records.jobs().overdue(now, last.as_ref(), AT_ONCE).await?;
            for Job { id, workspace, snapshot, .. } in &jobs {
                if let Some(limit) = snapshot.as_ref().and_then(|snapshot| snapshot.queue_limit) {
                    settle_overdue(&self.broker, workspace, *id, &limit).await?;
                }
            }
            last = jobs.into_iter().last();
            if last.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Jobs whose deletion was begun.
    async fn finish_deletions(&self) -> Result<(), Error> {
        for Job { id, workspace, .. } in self.records.jobs().tombstoned(AT_ONCE).await? {
            removal::remove(&self.records, &self.store, &*self.broker, &workspace, id).await?;
        }
        Ok(())
    }

    /// Finished jobs beyond the limits of time and number.
    async fn remove_old(&self) -> Result<(), Error> {
        let age = i64::try_from(self.retention.finished_seconds).unwrap_or(i64::MAX / 2);
        let jobs = self.records.jobs();
        let mut old = match Timestamp::now().checked_sub(SignedDuration::from_secs(age)) {
            Ok(before) => jobs.finished_before(before, AT_ONCE).await?,
            // Longer than there is time: nothing is that old.
            Err(_) => Vec::new(),
        };
        let keep = u32::try_from(self.retention.finished_jobs).unwrap_or(u32::MAX);
        old.extend(jobs.finished_beyond(keep, AT_ONCE).await?);
        for job in old {
            removal::purge(&*self.broker, &job.workspace, job.id).await?;
            jobs.set_purged(job.id).await?;
        }
        Ok(())
    }
}

fn told(what: &str, outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "sweeper could not {what}");
    }
}

#[cfg(test)]
mod tests;
