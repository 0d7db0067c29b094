//! Projection: facts and news of jobs become rows, many at a time. Only the projector calls this.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::AnyConnection;
use streams::attempt::AttemptEnd;
use streams::fact::{Run, SavedResult};
use streams::id::{Attempt, JobId};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::status::StatusMessage;

use super::jobs::life::Life;
use super::jobs::list_results;
use super::statement::{assembled, places};
use super::{Records, Result};

/// What the queue says of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// Its workspace, as the message's subject has it.
    pub workspace: String,
    /// When it happened.
    pub at: Timestamp,
    /// Whether it was delivered before: then it may be known and nobody told.
    pub redelivered: bool,
    /// What it is.
    pub news: News,
}

/// What can be said of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A fact.
    Fact(Proof),
    /// Its agent runs.
    Running {
        /// Which start of the agent.
        attempt: Attempt,
        /// All that its worker wants to show of it.
        details: Map<String, Value>,
    },
    /// Its agent waits for something that a worker has not.
    Waiting {
        /// What that is.
        details: Map<String, Value>,
    },
}

/// What a fact proves.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// Its phase.
    pub phase: Phase,
    /// How the job ends, once that is decided.
    pub outcome: Option<Outcome>,
    /// What is known of the attempt that counts.
    pub run: Option<Run>,
    /// Every attempt, and how it ended.
    pub attempts: Vec<AttemptEnd>,
    /// The results that it names.
    pub results: Vec<SavedResult>,
}

/// What came of a projection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projected {
    /// What to tell the world, in the order of each job's phases.
    pub messages: Vec<StatusMessage>,
    /// The jobs without a record.
    pub unknown: BTreeSet<JobId>,
}

impl Change {
    /// Whether it is the first fact of its job.
    pub fn is_submission(&self) -> bool {
        matches!(&self.news, News::Fact(proof) if proof.phase == Phase::Submitted)
    }

    /// Changes are taken in in the order in which they happen to a job.
    fn place(&self) -> (Phase, Option<Attempt>) {
        match &self.news {
            News::Fact(proof) => (proof.phase, None),
            News::Running { attempt, .. } => (Phase::Staged, Some(*attempt)),
            News::Waiting { .. } => (Phase::Staged, None),
        }
    }
}

pub(super) async fn project(records: &Records, changes: &[Change]) -> Result<Projected> {
    let mut by_job: BTreeMap<JobId, Vec<Change>> = BTreeMap::new();
    for change in changes {
        by_job.entry(change.job).or_default().push(change.clone());
    }
    by_job.values_mut().for_each(|changes| in_order(changes));
    if by_job.is_empty() {
        return Ok(Projected::default());
    }
    records.write(by_job, |by_job, db| apply(by_job, db).boxed()).await
}

pub(super) fn in_order(changes: &mut [Change]) {
    changes.sort_by_key(Change::place);
}

pub(super) async fn apply(
    by_job: &BTreeMap<JobId, Vec<Change>>,
    db: &mut AnyConnection,
) -> Result<Projected> {
    let mut projected =
        Projected { messages: Vec::new(), unknown: by_job.keys().copied().collect() };
    for mut life in lives(by_job.keys(), db).await? {
        projected.unknown.remove(&life.id);
        let before = life.clone();
        for change in by_job.get(&life.id).into_iter().flatten() {
            if change.workspace != life.workspace {
                // Whoever may publish in one workspace has no say over the jobs of another.
                tracing::warn!(job.id = %life.id, workspace = change.workspace, "not its workspace");
                continue;
            }
            projected.messages.extend(life.untold(change));
            projected.messages.extend(life.apply(change));
            if let News::Fact(proof) = &change.news {
                list_results(life.id, proof, db).await?;
            }
        }
        if life != before {
            life.store().run(&mut *db).await?;
        }
    }
    Ok(projected)
}

/// Notes that facts of these jobs were seen, which also locks their rows, and reads them.
async fn lives(
    jobs: impl ExactSizeIterator<Item = &JobId>,
    db: &mut AnyConnection,
) -> Result<Vec<Life>> {
    let seen = assembled(format!(
        "UPDATE jobs SET seen = 1 WHERE deleted_at IS NULL AND id IN ({}) RETURNING {}",
        places(1, jobs.len()),
        Life::COLUMNS
    ));
    let ids: Vec<String> = jobs.map(JobId::to_string).collect();
    let rows = seen.texts(ids.iter().map(String::as_str)).all(db).await?;
    // A row that cannot be read must not hold up all others.
    let readable = rows.iter().filter_map(|row| {
        Life::read(row).inspect_err(|error| tracing::error!(%error, "job cannot be read")).ok()
    });
    Ok(readable.collect())
}
