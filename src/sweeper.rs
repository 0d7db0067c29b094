//! The sweeper: does again what a process that died may have left undone, ends jobs that no worker
//! brings to their end, removes messages of jobs that were finished long enough ago, and what was
//! begun in the object store and left.
//!
//! Each thing that it does may be done any number of times, also by several sweepers at once.

mod attempts;
mod blobs;
mod consumers;
pub(crate) mod deleted;
mod leftovers;
mod unfinished;
mod vanished;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use streams::broker::{self, Broker};
use streams::claim::Decision;
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;
use tokio_util::sync::CancellationToken;
use workers::control::{self, LostClaims, settle_cancel, settle_overdue};
use workers::ends::Ends;
use workers::step::StepError;
use workers::store::{self, Store, key};

use crate::config::Retention;
use crate::records::{self, Due, Duty, Records};
use crate::{removal, submission};
use vanished::Vanished;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(5);

/// How often it looks for jobs that were not started in time: their owners wait for the answer.
const LOOK_FOR_OVERDUE: Duration = Duration::from_secs(1);

/// A submission is published right after its record; only one that is older was forgotten.
const FORGOTTEN: SignedDuration = SignedDuration::from_secs(5);

/// A cancelled job whose agent has ended is taken further by workers long before this.
const UNATTENDED: Duration = Duration::from_secs(30);

/// Jobs of a page, and the pages of one look.
const PAGE: u32 = 100;
const PAGES: usize = 100;

/// Jobs for which something is done at once.
const AT_ONCE: usize = 8;

/// When so many jobs fail one after another, it is not because of the jobs.
const IN_A_ROW: u32 = 5;

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
    /// How long a claim stays as it is until its worker is taken to be gone.
    pub lost_after: Duration,
}

/// Why something was not done; the next look begins anew.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Records(#[from] records::Error),
    #[error(transparent)]
    Broker(#[from] broker::Error),
    #[error(transparent)]
    Submission(#[from] submission::Error),
    #[error(transparent)]
    Step(#[from] StepError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Removal(#[from] removal::Error),
}

impl Sweeper {
    /// Looks again and again until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let age = Duration::from_secs(self.retention.unfinished_seconds);
        let store = unfinished::sweep(&self.store, age);
        let vanished =
            Vanished { records: &self.records, broker: &self.broker, store: &self.store };
        let unnamed = Duration::from_secs(self.retention.unnamed_seconds);
        let objects = async {
            tokio::join!(
                store,
                blobs::sweep(&self.records, &self.store, unnamed),
                deleted::sweep(&self.records, &self.store)
            );
        };
        let looking = async {
            tokio::join!(
                self.look_for_all(),
                self.look_for_overdue(),
                self.look_for_old(),
                objects,
                vanished.sweep()
            )
        };
        tokio::select! {
            () = stop.cancelled() => {}
            ((), (), (), (), ()) = looking => {}
        }
    }

    async fn look_for_all(&self) {
        let lost = LostClaims::new(Arc::clone(&self.broker), self.lost_after);
        loop {
            tokio::time::sleep(LOOK).await;
            self.look(&lost).await;
        }
    }

    async fn look_for_overdue(&self) {
        let none = LostClaims::new(Arc::clone(&self.broker), self.lost_after);
        loop {
            tokio::time::sleep(LOOK_FOR_OVERDUE).await;
            let swept = self.sweep(Duty::Start, Timestamp::now(), &none).await;
            told(words(Duty::Start), swept.map(drop));
        }
    }

    /// There may be very many of them at once, and nobody waits for that.
    async fn look_for_old(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.purge_old().await;
        }
    }

    async fn purge_old(&self) {
        let none = LostClaims::new(Arc::clone(&self.broker), self.lost_after);
        let swept = match self.old().await {
            Ok(Some(before)) => self.sweep(Duty::Purge, before, &none).await.map(drop),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        told(words(Duty::Purge), swept);
    }

    /// One failure does not keep the other kinds of work from being done.
    async fn look(&self, lost: &LostClaims) {
        for (duty, before) in [
            (Duty::Publish, Timestamp::now() - FORGOTTEN),
            (Duty::Cancel, Timestamp::MAX),
            (Duty::Delete, Timestamp::MAX),
        ] {
            let swept = self.sweep(duty, before, lost).await;
            if let (Duty::Cancel, Ok(jobs)) = (duty, &swept) {
                lost.keep_only(jobs);
            }
            told(words(duty), swept.map(drop));
        }
        told("remove what leads to nothing", leftovers::remove(&*self.broker).await);
        told("make consumers anew", consumers::ensure(&self.records, &*self.broker).await);
    }

    /// Does one thing for every job that wants it, and says which those were. A job for which it
    /// cannot be done does not hide those behind it.
    async fn sweep(
        &self,
        duty: Duty,
        before: Timestamp,
        lost: &LostClaims,
    ) -> Result<HashSet<JobId>, Error> {
        let (mut last, mut failed, mut seen) = (None, 0, HashSet::new());
        for _ in 0..PAGES {
            let page = self.records.jobs().due(duty, before, last.as_ref(), PAGE).await?;
            last = page.last().cloned();
            let performed = stream::iter(page)
                .map(|job| async move { (job.id, self.perform(duty, &job, lost).await) })
                .buffered(AT_ONCE);
            let mut performed = std::pin::pin!(performed);
            while let Some((job, performed)) = performed.next().await {
                seen.insert(job);
                match performed {
                    Ok(()) => failed = 0,
                    Err(error) if failed + 1 == IN_A_ROW => return Err(error),
                    Err(error) => {
                        failed += 1;
                        let what = words(duty);
                        tracing::warn!(job.id = %job, %error, "sweeper could not {what}");
                    }
                }
            }
            if last.is_none() {
                break;
            }
        }
        Ok(seen)
    }

    async fn perform(&self, duty: Duty, job: &Due, lost: &LostClaims) -> Result<(), Error> {
        match duty {
            Duty::Publish => self.publish(job).await,
            Duty::Cancel => self.cancel(job, lost).await,
            Duty::Start => self.end_overdue(job).await,
            Duty::Delete => self.delete(job).await,
            Duty::Purge => self.purge(job).await,
            // The notifier does it, which waits for receivers.
            Duty::Tell => Ok(()),
        }
    }

    /// Its server died between commit and publication.
    async fn publish(&self, job: &Due) -> Result<(), Error> {
        if let Some(job) = self.records.jobs().by_id(job.id).await? {
            submission::submit(&*self.broker, &self.store, &job).await?;
            tracing::info!(job.id = %job.id, "published a submission that was not seen yet");
        }
        Ok(())
    }

    /// Whoever cancels a job settles its claim at once. A job is left that was not resolved then,
    /// whose server died over it, or whose worker has the agent in hand; that one may be gone, and
    /// so may those who should take the job further.
    async fn cancel(&self, job: &Due, lost: &LostClaims) -> Result<(), Error> {
        let (workspace, id) = (&job.workspace, job.id);
        let unattended = UNATTENDED.min(self.lost_after);
        if control::finish(&self.broker, &self.store, workspace, id, unattended).await? {
            return Ok(());
        }
        // It is decided, unless the queue lost its keys.
        let ends = Ends::new(Arc::clone(&self.broker));
        if ends.decide(id, Decision::Cancel, "sweeper").await? == Decision::Cancel {
            settle_cancel(&self.broker, workspace, id).await?;
            lost.settle_cancel(workspace, id).await?;
        }
        Ok(())
    }

    /// Whether its agent was started in time is decided by the claim: a job that was started and
    /// is not known to be stays listed, and nothing comes of it.
    async fn end_overdue(&self, job: &Due) -> Result<(), Error> {
        let Some(job) = self.records.jobs().by_id(job.id).await? else { return Ok(()) };
        let limit = job.snapshot.as_ref().and_then(|snapshot| snapshot.queue_limit);
        match limit {
            Some(limit) => Ok(settle_overdue(&self.broker, &job.workspace, job.id, &limit).await?),
            None => Ok(()),
        }
    }

    async fn delete(&self, job: &Due) -> Result<(), Error> {
        let (records, store) = (&self.records, &self.store);
        match removal::remove(records, store, &*self.broker, &job.workspace, job.id).await {
            // Another sweeper was quicker.
            Err(removal::Error::Records(records::Error::NotFound)) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Of a finished job beyond the limits of time and number.
    async fn purge(&self, job: &Due) -> Result<(), Error> {
        self.keep_last_fact(job).await?;
        attempts::sweep(&*self.broker, &self.store, &job.workspace, job.id).await?;
        removal::purge(&*self.broker, &job.workspace, job.id).await?;
        if !self.records.jobs().set_purged(job.id).await? {
            // It was deleted meanwhile, and nothing of it may stay.
            self.store.delete(&key::last_fact(&job.workspace, job.id)).await?;
        }
        Ok(())
    }

    /// The manifest holds the other five; with this one the record can be made anew exactly.
    async fn keep_last_fact(&self, job: &Due) -> Result<(), Error> {
        let subject = subject::fact(Phase::Archived, &job.workspace, job.id);
        let last = self.broker.last(StreamName::of(Phase::Archived), &subject).await?;
        if let Some(last) = last {
            self.store.put(&key::last_fact(&job.workspace, job.id), last.payload).await?;
        }
        Ok(())
    }

    /// Finished jobs that ended before this have been kept long enough, or are too many.
    async fn old(&self) -> Result<Option<Timestamp>, Error> {
        let age = i64::try_from(self.retention.finished_seconds).unwrap_or(i64::MAX / 2);
        // Longer than there is time: nothing is that old.
        let aged = Timestamp::now().checked_sub(SignedDuration::from_secs(age)).ok();
        let keep = u32::try_from(self.retention.finished_jobs).unwrap_or(u32::MAX);
        let beyond = self.records.jobs().ended_beyond(keep).await?;
        // Also that one itself.
        let beyond = beyond.map(|at| at + SignedDuration::from_micros(1));
        Ok(aged.max(beyond))
    }
}

const fn words(duty: Duty) -> &'static str {
    match duty {
        Duty::Publish => "publish submissions",
        Duty::Cancel => "settle cancelled jobs",
        Duty::Start => "end jobs that were not started in time",
        Duty::Delete => "finish deletions",
        Duty::Purge => "remove old messages",
        Duty::Tell => "tell of ends",
    }
}

fn told(what: &str, outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "sweeper could not {what}");
    }
}

#[cfg(test)]
mod tests;
