//! Claims: the right to run the agent of one job.
//!
//! A claim names a *place* (where its agent can be found again) and a worker process. At the
//! same place it is taken over at once when the old worker's lock is free; elsewhere only after
//! it was not renewed for `lost_after` on the observer's own clock, so that no two clocks are
//! ever compared.

mod begun;
mod keep;

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use streams::attempt::AttemptEnd;
use streams::broker::{Broker, Error};
use streams::claim::{self, Claim, Start};
use streams::id::{Attempt, JobId};
use streams::topology::Bucket;

use crate::executor::Executor;
use crate::step::StepError;
use crate::unchanged::Unchanged;

pub(crate) use begun::Begun;

/// How long a job that somebody else holds is left alone before the next look.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_ELSEWHERE: Duration = Duration::from_secs(15);

/// How often a claim is renewed at the most.
const RENEW: Duration = Duration::from_secs(30);

/// The claims of one worker process.
pub struct Claims {
    broker: Arc<dyn Broker>,
    place: String,
    worker: String,
    /// Makes the keys of these claims.
    key: fn(JobId) -> String,
    locks: PathBuf,
    /// Held while this process lives; its name is in every claim of ours.
    _lock: File,
    /// Claims of other places.
    seen: Unchanged,
    /// Jobs that a task of this process works on.
    busy: Mutex<HashSet<JobId>>,
}

/// What asking for a claim came to.
pub(crate) enum Grant<'a> {
    /// It is ours.
    Held(Held<'a>),
    /// Somebody else has it; ask again after this time.
    Busy(Duration),
    /// The job was ended before its agent was started, and nobody gets it.
    Settled,
}

/// A claim that is ours, until it is dropped or taken over.
pub(crate) struct Held<'a> {
    claims: &'a Claims,
    job: JobId,
    state: tokio::sync::Mutex<State>,
}

#[derive(Clone)]
struct State {
    revision: u64,
    claim: Claim,
}

/// The claim is not ours any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    /// Another worker has taken it.
    #[error("the claim was taken over by another worker")]
    TakenOver,
    /// The broker did not answer; it may still be ours.
    #[error(transparent)]
    Broker(#[from] Error),
}

impl Claims {
    /// The claims of a worker that starts now. `locks` is a directory of this place in which
    /// each worker process holds a lock while it lives.
    pub fn new(
        broker: Arc<dyn Broker>,
        place: String,
        locks: PathBuf,
        lost_after: Duration,
    ) -> io::Result<Self> {
        fs::create_dir_all(&locks)?;
        let worker = uuid::Uuid::now_v7().simple().to_string();
        let lock = File::create(locks.join(&worker))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            broker,
            place,
            worker,
            key: claim::agent_key,
            locks,
            _lock: lock,
            seen: Unchanged::new(lost_after),
            busy: Mutex::default(),
        })
    }

    /// Makes them claims on the jobs' post-run actions, which are run under the same rules.
    pub fn on_actions(self) -> Self {
        Self { key: claim::action_key, ..self }
    }

    /// Where this worker runs agents.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// When an agent must stop because nobody renews its lease: before anybody else may start
    /// another.
    pub fn lease(&self) -> Duration {
        self.seen
            .lost_after()
            .saturating_sub(Duration::from_secs(120))
            .max(self.seen.lost_after() / 2)
    }

    /// How often a claim must be renewed, and with it the lease. A lease that was renewed as late
    /// as that, and the half of what is then left to end the agent in (the runner keeps to that),
    /// are over before anybody may take the claim.
    pub(crate) fn renewal(&self) -> Duration {
        RENEW.min(self.lease() / 3)
    }

    /// Asks for the claim on a job.
    pub(crate) async fn take(&self, job: JobId) -> Result<Grant<'_>, Error> {
        if lock(&self.busy).contains(&job) {
            // By the time that it is over the next fact stands: nothing is waited for.
            return Ok(Grant::Busy(LOOK_ELSEWHERE));
        }
        let key = (self.key)(job);
        let Some(entry) = self.broker.get(Bucket::Claims, &key).await? else {
            let claim = Claim::new(&self.place, &self.worker);
            let created = self.broker.create(Bucket::Claims, &key, encode(&claim)).await?;
            return Ok(self.grant(job, created, claim));
        };
        let there: Claim = serde_json::from_slice(&entry.value).map_err(|error| {
            Error::Refused { what: format!("claim {key}"), reason: error.to_string() }
        })?;
        if there.settled {
            return Ok(Grant::Settled);
        }
        let elsewhere = there.place != self.place && !there.released;
        if elsewhere && !self.seen.is_lost(job, entry.revision) {
            return Ok(Grant::Busy(LOOK_ELSEWHERE.min(self.seen.lost_after() / 2)));
        }
        let is_held = there.worker != self.worker && !there.released;
        if !elsewhere && is_held && self.is_alive(&there.worker) {
            return Ok(Grant::Busy(LOOK));
        }
        // Written down: whoever comes after us must know, too, that this attempt is lost. One that
        // was not started is not: what is written here keeps the worker that had it from starting.
        let lost = there.lost || (elsewhere && there.started);
        let claim = self.renewed(Claim { lost, ..there });
        let updated =
            self.broker.update(Bucket::Claims, &key, encode(&claim), entry.revision).await?;
        Ok(self.grant(job, updated, claim))
    }

    fn grant(&self, job: JobId, revision: Option<u64>, claim: Claim) -> Grant<'_> {
        let Some(revision) = revision else { return Grant::Busy(LOOK) };
        self.seen.forget(job);
        if !lock(&self.busy).insert(job) {
            return Grant::Busy(LOOK);
        }
        let state = tokio::sync::Mutex::new(State { revision, claim });
        Grant::Held(Held { claims: self, job, state })
    }

    /// The same claim as one that this worker holds from now on.
    fn renewed(&self, claim: Claim) -> Claim {
        Claim {
            place: self.place.clone(),
            worker: self.worker.clone(),
            at: Timestamp::now(),
            done: false,
            released: false,
            ..claim
        }
    }

    /// Whether a worker of this place holds the claim which is gone, and what it began is not over.
    async fn is_left_here(&self, job: JobId) -> Result<bool, Error> {
        if lock(&self.busy).contains(&job) {
            return Ok(false);
        }
        let entry = self.broker.get(Bucket::Claims, &(self.key)(job)).await?;
        let claim = entry.and_then(|entry| serde_json::from_slice::<Claim>(&entry.value).ok());
        Ok(claim.is_some_and(|claim| {
            let is_over = claim.done || claim.settled || claim.released;
            let is_ours = claim.place == self.place;
            is_ours && !is_over && (claim.worker == self.worker || !self.is_alive(&claim.worker))
        }))
    }

    /// Whether a worker process of this place lives: it holds a lock on its file.
    fn is_alive(&self, worker: &str) -> bool {
        match File::open(self.locks.join(worker)) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
            // Anything else, such as too many open files, proves nothing.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Held<'_> {
    /// Which start of the agent this is.
    pub(crate) async fn attempt(&self) -> Attempt {
        self.state.lock().await.claim.attempt
    }

    /// Whether the agent of this attempt was lost with its place.
    pub(crate) async fn is_lost(&self) -> bool {
        self.state.lock().await.claim.lost
    }

    /// Whether the runner of this attempt was about to be started, by us or by one before us.
    pub(crate) async fn is_started(&self) -> bool {
        self.state.lock().await.claim.started
    }

    /// When and where that was.
    pub(crate) async fn start(&self) -> Option<Start> {
        self.state.lock().await.claim.start.clone()
    }

    /// How the attempts before this one ended.
    pub(crate) async fn past(&self) -> Vec<AttemptEnd> {
        self.state.lock().await.claim.past.clone()
    }

    /// Says that we are still at it.
    pub(crate) async fn renew(&self) -> Result<(), Gone> {
        self.write(|_| {}).await
    }

    /// Notes, right before it, that the runner is started.
    pub(crate) async fn note_start(&self) -> Result<(), Gone> {
        let place = self.claims.place.clone();
        self.write(|claim| {
            claim.started = true;
            claim.start.get_or_insert_with(|| Start { at: Timestamp::now(), place });
        })
        .await
    }

    /// Begins another attempt, and notes how this one ended.
    pub(crate) async fn next_attempt(&self, ended: AttemptEnd) -> Result<(), Gone> {
        self.write(|claim| {
            claim.attempt = Attempt(claim.attempt.0 + 1);
            (claim.started, claim.start, claim.lost) = (false, None, false);
            ended.add_to(&mut claim.past);
        })
        .await
    }

    /// Gives it back before this attempt is started: others need not wait until it is lost.
    pub(crate) async fn release(&self) -> Result<(), Gone> {
        self.write(|claim| claim.released = true).await
    }

    async fn write(&self, change: impl FnOnce(&mut Claim)) -> Result<(), Gone> {
        let mut state = self.state.lock().await;
        let (broker, key) = (&self.claims.broker, (self.claims.key)(self.job));
        let mut claim = self.claims.renewed(state.claim.clone());
        change(&mut claim);
        let value = encode(&claim);
        let mut written =
            broker.update(Bucket::Claims, &key, value.clone(), state.revision).await?;
        if written.is_none() {
            // An earlier write of ours may have been stored although its confirmation was lost.
            let entry = broker.get(Bucket::Claims, &key).await?;
            let entry = entry.filter(|entry| ours(&entry.value, &self.claims.worker));
            let revision = entry.ok_or(Gone::TakenOver)?.revision;
            written = broker.update(Bucket::Claims, &key, value, revision).await?;
        }
        *state = State { revision: written.ok_or(Gone::TakenOver)?, claim };
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        lock(&self.claims.busy).remove(&self.job);
    }
}

/// Jobs of which there are runs here and whose claims workers have left that were here.
pub(crate) async fn begun_here(
    claims: &Claims,
    executor: &dyn Executor,
) -> Result<Vec<JobId>, StepError> {
    let jobs: BTreeSet<_> = executor.runs().await?.into_iter().map(|run| run.job).collect();
    let mut left = Vec::new();
    for job in jobs {
        if claims.is_left_here(job).await? {
            left.push(job);
        }
    }
    Ok(left)
}

/// Notes on the claim, whoever has it by now, that the run is over and its fact stands.
pub(crate) async fn finish(claims: &Claims, job: JobId) -> Result<(), Error> {
    let key = (claims.key)(job);
    let Some(entry) = claims.broker.get(Bucket::Claims, &key).await? else { return Ok(()) };
    let Ok(mut claim) = serde_json::from_slice::<Claim>(&entry.value) else { return Ok(()) };
    if claim.done {
        return Ok(());
    }
    claim.done = true;
    let value = encode(&claim);
    match claims.broker.update(Bucket::Claims, &key, value, entry.revision).await? {
        Some(_) => Ok(()),
        None => Err(Error::Unavailable(format!("claim {key} changed meanwhile"))),
    }
}

fn ours(value: &[u8], worker: &str) -> bool {
    serde_json::from_slice::<Claim>(value).is_ok_and(|claim| claim.worker == worker)
}

fn encode(claim: &Claim) -> bytes::Bytes {
    serde_json::to_vec(claim).unwrap_or_default().into()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
