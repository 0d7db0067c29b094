//! Rebuilding the records of jobs from what streams and store hold of them: `errand records
//! rebuild`. It may be done any number of times, also beside a running platform.
//!
//! What was only ever in the database does not come back: agents, filesets, secrets, environments,
//! and of a job the details that callers laid over its own.

mod facts;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use streams::broker::{self, Broker};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;
use workers::ends::Ends;
use workers::holds::Holds;
use workers::store::{self, Store, key};

use crate::records::{self, Rebuilt, Records, Told};
use crate::{projector, status};
use facts::Facts;

/// Jobs whose trouble is told one by one; of more only the number is.
const TOLD: usize = 1000;

/// Where from, and where to.
pub struct Rebuild {
    /// The records.
    pub records: Records,
    /// The queue.
    pub broker: Arc<dyn Broker>,
    /// The object store.
    pub store: Store,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Rows that were missing and are made.
    pub made: u64,
    /// Rows that were there and behind.
    pub advanced: u64,
    /// Rows that were right.
    pub kept: u64,
    /// Jobs that were deleted and stay so.
    pub tombstoned: u64,
    /// Submissions that no worker has resolved; those that carry their spec get their record then.
    pub waiting: u64,
    /// Jobs that cannot be rebuilt.
    pub unreadable: u64,
    /// Why, by their ids; not all, where they are very many.
    pub reasons: BTreeMap<JobId, String>,
}

/// Why a rebuild was broken off. What was done stands; do it again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The records.
    #[error(transparent)]
    Records(#[from] records::Error),
    /// The queue.
    #[error(transparent)]
    Broker(#[from] broker::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The world was not told.
    #[error(transparent)]
    Status(#[from] status::Error),
}

impl Rebuild {
    /// Rebuilds every job; `went_on` is told after each.
    pub async fn run(&self, mut went_on: impl FnMut(&Report)) -> Result<Report, Error> {
        let mut report = Report::default();
        self.standing_jobs(&mut report, &mut went_on).await?;
        self.archived_jobs(&mut report, &mut went_on).await?;
        Ok(report)
    }

    /// Jobs whose first fact stands: all that are unfinished, and those that ended lately.
    async fn standing_jobs(
        &self,
        report: &mut Report,
        went_on: &mut impl FnMut(&Report),
    ) -> Result<(), Error> {
        let (all, mut from) = (subject::facts(Phase::Submitted), 1);
        while let Some(first) = self.broker.next(StreamName::Intake, &all, from).await? {
            from = first.sequence + 1;
            // What is no fact the step that consumes it refuses.
            if let Ok(subject) = subject::parse_fact(&first.subject) {
                let facts = Facts::standing(&*self.broker, subject, first).await?;
                self.rebuild(facts, report).await?;
                went_on(report);
            }
        }
        Ok(())
    }

    /// Jobs that are finished and whose messages are gone.
    async fn archived_jobs(
        &self,
        report: &mut Report,
        went_on: &mut impl FnMut(&Report),
    ) -> Result<(), Error> {
        for workspace in self.folders(key::JOBS).await? {
            let within = format!("{}{workspace}/", key::JOBS);
            let mut page = None;
            loop {
                let (folders, next) = self.store.folders(&within, page).await?;
                for job in folders.iter().filter_map(|folder| name_of(folder, &within)) {
                    let Ok(job) = JobId::from_str(job) else { continue };
                    if let Some(facts) = self.archived(&workspace, job).await? {
                        self.rebuild(facts, report).await?;
                        went_on(report);
                    }
                }
                match next {
                    Some(next) => page = Some(next),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Every folder's name below a prefix; for those of which there are few.
    async fn folders(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let (mut names, mut page) = (Vec::new(), None);
        loop {
            let (folders, next) = self.store.folders(prefix, page).await?;
            names.extend(folders.iter().filter_map(|it| Some(name_of(it, prefix)?.to_owned())));
            page = next;
            if page.is_none() {
                return Ok(names);
            }
        }
    }

    /// What the manifest of a job says, unless its facts say it.
    async fn archived(&self, workspace: &str, job: JobId) -> Result<Option<Facts>, Error> {
        let first = subject::fact(Phase::Submitted, workspace, job);
        if self.broker.last(StreamName::Intake, &first).await?.is_some() {
            return Ok(None);
        }
        let Some(manifest) = self.store.find(&key::manifest(workspace, job)).await? else {
            return Ok(None);
        };
        let last = self.store.find(&key::last_fact(workspace, job)).await?;
        Ok(Some(Facts::archived(workspace, job, &manifest, last)))
    }

    async fn rebuild(&self, facts: Facts, report: &mut Report) -> Result<(), Error> {
        let (job, purged) = (facts.job, facts.purged);
        let new = match facts.admitted(&self.store).await {
            Ok(Some(new)) => new,
            Ok(None) => {
                report.waiting += 1;
                return Ok(());
            }
            Err(reason) => {
                report.unreadable(job, reason.to_string());
                return Ok(());
            }
        };
        let told = Told {
            cancelled: !purged && Ends::new(Arc::clone(&self.broker)).is_cancelled(job).await?,
            held: !purged && Holds::new(Arc::clone(&self.broker)).is_held(job).await?,
            changes: facts.changes(),
            new,
            purged,
        };
        let messages = match self.records.rebuild(told).await? {
            Rebuilt::Made(messages) => {
                report.made += 1;
                messages
            }
            Rebuilt::Advanced(messages) => {
                report.advanced += 1;
                messages
            }
            Rebuilt::Kept => {
                report.kept += 1;
                Vec::new()
            }
            Rebuilt::Tombstoned => {
                report.tombstoned += 1;
                Vec::new()
            }
            Rebuilt::NameTaken => {
                report.unreadable(job, "another job has its name or its key by now".to_owned());
                Vec::new()
            }
        };
        // A projector that comes later finds nothing new in them. Of what has left the streams
        // the world was told long ago.
        if !purged {
            projector::publish(&*self.broker, &messages).await?;
        }
        Ok(())
    }
}

impl Report {
    fn unreadable(&mut self, job: JobId, reason: String) {
        self.unreadable += 1;
        if self.reasons.len() < TOLD {
            self.reasons.insert(job, reason);
        }
    }
}

fn name_of<'f>(folder: &'f str, prefix: &str) -> Option<&'f str> {
    folder.strip_prefix(prefix)?.strip_suffix('/')
}
