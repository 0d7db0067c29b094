//! Seats: how many jobs of a workspace run at once, in the whole installation. A job that is begun
//! with has a seat until its fact after that stands.
//!
//! Seats are a record that all workers share, changed by one write upon exactly what was read, so
//! the limit holds whoever asks at the same moment. They are not counted by what the queue has
//! given out: it gives out jobs that wait or are held too, and forgets all of it with a consumer
//! that is made anew. Nor by claims: two workers that count at once would both find room. A job
//! keeps its seat when its worker dies, since its agent may go on, and whoever looks for a seat
//! takes away those of jobs that are past their run. So none is lost for ever.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use futures_util::{StreamExt, TryStreamExt};
use streams::broker::{Broker, Error};
use streams::claim::{self, Claim};
use streams::id::JobId;
use streams::phase::Phase;
use streams::seats::{self, Seated};
use streams::topology::Bucket;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::runtime::stands;

/// How often those who are past their run are looked for, at the most.
const CLEAR: Duration = Duration::from_secs(3);

/// Jobs of which that is asked at once.
const AT_ONCE: usize = 16;

/// How often a record that others change meanwhile is read again before the caller comes back.
const TRIES: usize = 16;

/// Limits of running jobs, by workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of every workspace that has none of its own; 0 = none.
    pub each: u64,
    /// Of these workspaces; 0 = none.
    pub own: BTreeMap<String, u64>,
}

impl Limits {
    /// The limit of a workspace, if it has one.
    pub fn of(&self, workspace: &str) -> Option<usize> {
        let limit = self.own.get(workspace).copied().unwrap_or(self.each);
        usize::try_from(limit).ok().filter(|limit| *limit > 0)
    }

    /// Whether there is any.
    fn are_set(&self) -> bool {
        self.each > 0 || self.own.values().any(|limit| *limit > 0)
    }
}

/// The seats, as one worker sees them.
pub struct Seats {
    broker: Arc<dyn Broker>,
    limits: Limits,
    /// When those past their run were last looked for, by workspace.
    cleared: Mutex<HashMap<String, Instant>>,
    freed: Notify,
}

impl Seats {
    /// Seats are kept by the broker.
    pub fn new(broker: Arc<dyn Broker>, limits: Limits) -> Self {
        Self { broker, limits, cleared: Mutex::default(), freed: Notify::new() }
    }

    /// Whether any workspace has a limit.
    pub(crate) fn are_limited(&self) -> bool {
        self.limits.are_set()
    }

    /// Waits until a seat became free by this worker's doing.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Whether another job of a workspace would get a seat now.
    pub(crate) async fn is_free(&self, workspace: &str) -> Result<bool, Error> {
        let Some(limit) = self.limits.of(workspace) else { return Ok(true) };
        if self.read(workspace).await?.0.jobs.len() < limit {
            return Ok(true);
        }
        if !self.may_clear(workspace) {
            return Ok(false);
        }
        self.clear(workspace).await?;
        Ok(self.read(workspace).await?.0.jobs.len() < limit)
    }

    /// Takes a seat for a job, unless it has one; says whether it has one now. A job whose agent
    /// runs already, as it does when a limit is new, gets one beyond the limit: others wait for it.
    pub(crate) async fn take(&self, workspace: &str, job: JobId) -> Result<bool, Error> {
        let Some(limit) = self.limits.of(workspace) else { return Ok(true) };
        for _ in 0..TRIES {
            let (mut seated, revision) = self.read(workspace).await?;
            if seated.jobs.contains(&job) {
                return Ok(true);
            }
            if seated.jobs.len() >= limit && !self.is_begun(job).await? {
                return Ok(false);
            }
            seated.jobs.push(job);
            if self.write(workspace, &seated, revision).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives up the seat of a job that is past its run.
    pub(crate) async fn leave(&self, workspace: &str, job: JobId) -> Result<(), Error> {
        if self.limits.of(workspace).is_none() {
            return Ok(());
        }
        self.remove(workspace, &[job]).await
    }

    /// The same for one that is not begun with now, as when somebody holds it; one whose agent may
    /// run keeps its seat, and so does one that another worker has taken over meanwhile.
    pub(crate) async fn give_back(&self, workspace: &str, job: JobId) -> Result<(), Error> {
        if self.limits.of(workspace).is_none() || self.is_claimed(job).await? {
            return Ok(());
        }
        self.remove(workspace, &[job]).await
    }

    /// Takes the seats of jobs that are past their run, and whose workers could not say so.
    async fn clear(&self, workspace: &str) -> Result<(), Error> {
        let jobs = stream::iter(self.read(workspace).await?.0.jobs);
        let past = jobs.map(async |job| Ok((job, self.is_past(workspace, job).await?)));
        let past: Vec<_> = past.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
        let past: Vec<_> = past.into_iter().filter_map(|(job, is)| is.then_some(job)).collect();
        match past.is_empty() {
            true => Ok(()),
            false => self.remove(workspace, &past).await,
        }
    }

    async fn remove(&self, workspace: &str, jobs: &[JobId]) -> Result<(), Error> {
        for _ in 0..TRIES {
            let (mut seated, revision) = self.read(workspace).await?;
            let before = seated.jobs.len();
            seated.jobs.retain(|job| !jobs.contains(job));
            if seated.jobs.len() == before {
                return Ok(());
            }
            if self.write(workspace, &seated, revision).await? {
                self.freed.notify_one();
                return Ok(());
            }
        }
        Err(Error::Unavailable(format!("seats of workspace {workspace} change all the time")))
    }

    /// Whether the fact after a job's run stands, or nothing of the job any more.
    async fn is_past(&self, workspace: &str, job: JobId) -> Result<bool, Error> {
        let stands = |phase| stands(&*self.broker, phase, workspace, job);
        Ok(stands(Phase::Invoked).await? || !stands(Phase::Staged).await?)
    }

    /// Whether a job's agent was started, and its run is not known to be over.
    async fn is_begun(&self, job: JobId) -> Result<bool, Error> {
        Ok(self.claim(job).await?.is_some_and(|claim| claim.started && !claim.done))
    }

    /// Whether a worker has a job in hand.
    async fn is_claimed(&self, job: JobId) -> Result<bool, Error> {
        let is_held = |claim: Claim| !(claim.done || claim.settled || claim.released);
        Ok(self.claim(job).await?.is_some_and(is_held))
    }

    async fn claim(&self, job: JobId) -> Result<Option<Claim>, Error> {
        let entry = self.broker.get(Bucket::Claims, &claim::agent_key(job)).await?;
        Ok(entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()))
    }

    fn may_clear(&self, workspace: &str) -> bool {
        let mut cleared = self.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = cleared.get(workspace).is_none_or(|at| now.duration_since(*at) >= CLEAR);
        if is_due {
            cleared.insert(workspace.to_owned(), now);
        }
        is_due
    }

    async fn read(&self, workspace: &str) -> Result<(Seated, Option<u64>), Error> {
        let key = seats::key(workspace);
        let Some(entry) = self.broker.get(Bucket::Seats, &key).await? else {
            return Ok((Seated::default(), None));
        };
        let seated = serde_json::from_slice(&entry.value).map_err(|error| Error::Refused {
            what: format!("seats of workspace {workspace}"),
            reason: error.to_string(),
        })?;
        Ok((seated, Some(entry.revision)))
    }

    /// Writes the record if nobody changed it since it was read; says whether it did.
    async fn write(
        &self,
        workspace: &str,
        seated: &Seated,
        revision: Option<u64>,
    ) -> Result<bool, Error> {
        let key = seats::key(workspace);
        // Ids always have a JSON form.
        let value: Bytes = serde_json::to_vec(seated).unwrap_or_default().into();
        let written = match revision {
            Some(revision) => self.broker.update(Bucket::Seats, &key, value, revision).await?,
            None => self.broker.create(Bucket::Seats, &key, value).await?,
        };
        Ok(written.is_some())
    }
}

#[cfg(test)]
mod tests;
