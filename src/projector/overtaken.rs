//! Facts that were overtaken by their job's last one. What a process that died had in hand is
//! delivered again only after a while, and what came later before it. A job that is shown as ended
//! without them would look like one that left no results: so they are looked up, and taken in with
//! the last one.

use std::collections::HashSet;

use streams::broker::{Broker, Error};
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;

use super::reading;
use crate::records::{Change, News};

/// The facts that name results.
const NAMING: [Phase; 3] = [Phase::Staged, Phase::Invoked, Phase::Acted];

/// Facts that are remembered; beyond, all are forgotten, and looked up instead.
const MOST: usize = 100_000;

/// The facts of these phases that were taken in here, of jobs whose last one was not.
#[derive(Default)]
pub(super) struct Overtaken {
    known: HashSet<(JobId, Phase)>,
}

impl Overtaken {
    /// What a batch lacks of the jobs that end with it.
    pub(super) async fn of(
        &self,
        broker: &dyn Broker,
        batch: &[Change],
    ) -> Result<Vec<Change>, Error> {
        let here: HashSet<_> = batch.iter().filter_map(named).collect();
        let mut found = Vec::new();
        for change in batch.iter().filter(|change| phase(change) == Some(Phase::Archived)) {
            for phase in NAMING {
                let fact = (change.job, phase);
                if here.contains(&fact) || self.known.contains(&fact) {
                    continue;
                }
                let subject = subject::fact(phase, &change.workspace, change.job);
                let stored = broker.last(StreamName::of(phase), &subject).await?;
                found.extend(stored.and_then(|stored| reading::change(&stored)));
            }
        }
        Ok(found)
    }

    /// Notes what was taken in.
    pub(super) fn note(&mut self, batch: &[Change]) {
        if self.known.len() > MOST {
            self.known.clear();
        }
        self.known.extend(batch.iter().filter_map(named));
        for ended in batch.iter().filter(|change| phase(change) == Some(Phase::Archived)) {
            NAMING.iter().for_each(|phase| {
                self.known.remove(&(ended.job, *phase));
            });
        }
    }
}

/// The fact that a change is, if it is one that names results.
fn named(change: &Change) -> Option<(JobId, Phase)> {
    let phase = phase(change).filter(|phase| NAMING.contains(phase))?;
    Some((change.job, phase))
}

fn phase(change: &Change) -> Option<Phase> {
    match &change.news {
        News::Fact(proof) => Some(proof.phase),
        News::Running { .. } | News::Waiting { .. } => None,
    }
}
