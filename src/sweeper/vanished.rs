//! Jobs that are on their way by their records, and of which the queue does not know any more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use streams::broker::Broker;
use workers::control::{give_up, is_vanished};
use workers::store::{Store, key};

use super::Error;
use crate::records::{Records, Unfinished};
use crate::submission;

/// How often all of them are looked at, and soon after the start.
const LOOK: Duration = Duration::from_secs(60);
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// Jobs of a page, and how many of them are looked at side by side.
const PAGE: u32 = 500;
const WIDTH: usize = 32;

/// What it works on.
pub(super) struct Vanished<'s> {
    pub(super) records: &'s Records,
    pub(super) broker: &'s Arc<dyn Broker>,
    pub(super) store: &'s Store,
}

impl Vanished<'_> {
    /// Looks again and again, for as long as it is asked to.
    pub(super) async fn sweep(&self) {
        let mut pause = FIRST_LOOK;
        loop {
            tokio::time::sleep(pause).await;
            super::told("look after unfinished jobs", self.look().await);
            pause = LOOK;
        }
    }

    /// Looks at each of them once.
    async fn look(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let (jobs, next) = self.records.jobs().unfinished(after, PAGE).await?;
            let looks = stream::iter(jobs).map(|job| async move { self.look_at(&job).await });
            looks.buffer_unordered(WIDTH).try_collect::<()>().await?;
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// One that fails does not keep the others from being looked at, unless the queue is away.
    async fn look_at(&self, job: &Unfinished) -> Result<(), Error> {
        if !is_vanished(&**self.broker, &job.workspace, job.id, job.phase).await? {
            return Ok(());
        }
        if let Err(error) = self.give_up(job).await {
            tracing::warn!(job.id = %job.id, %error, "job whose facts are gone could not be ended");
        }
        Ok(())
    }

    async fn give_up(&self, seen: &Unfinished) -> Result<(), Error> {
        // It may have ended since it was listed, and its messages may be gone for that reason.
        let Some(job) = self.records.jobs().by_id(seen.id).await? else { return Ok(()) };
        if job.ended_at.is_some() {
            return Ok(());
        }
        tracing::error!(
            job.id = %job.id,
            phase = %job.phase,
            "the queue lost the facts of a job that is on its way, the job is ended"
        );
        let snapshot = match &job.snapshot {
            Some(snapshot) => {
                let value = serde_json::to_value(snapshot).map_err(submission::Error::from)?;
                Some(self.store.part(&key::snapshot(&job.workspace, job.id), value).await?)
            }
            None => None,
        };
        let first = submission::first_fact(self.store, &job).await?;
        Ok(give_up(self.broker, first, snapshot, job.outcome).await?)
    }
}
