//! Blobs: which of them the records name. Their bytes are in the object store, and when one is
//! removed there is decided by the sweeper.

use std::collections::HashSet;

use serde::Deserialize;
use streams::snapshot::{Mount, ObjectRef, Source};

use super::statement::{Row, assembled, places, sql};
use super::{Records, Result};

/// Digests in one question.
const AT_ONCE: usize = 500;

/// What the records name.
pub struct Blobs<'r>(pub(super) &'r Records);

/// The listings that a job's snapshot pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// The job, as its row has it.
    pub job: String,
    /// The listings; the blobs that they list are pinned with them.
    pub listings: Vec<ObjectRef>,
}

/// The part of a snapshot that names blobs.
#[derive(Deserialize)]
struct Sources {
    base: Option<Source>,
    mounts: Vec<Mount>,
    ethos: Option<Source>,
}

impl Blobs<'_> {
    /// Those of these digests that a fileset names, for a file of it or for its frozen listing.
    pub async fn in_filesets(&self, digests: &[String]) -> Result<HashSet<String>> {
        let mut named = HashSet::new();
        for some in digests.chunks(AT_ONCE) {
            let list = places(1, some.len());
            let found = assembled(format!("SELECT sha256 FROM files WHERE sha256 IN ({list})"));
            let found = found.texts(some.iter().map(String::as_str)).all(self.0.reads()).await?;
            for row in &found {
                named.insert(row.text("sha256")?);
            }
        }
        if named.len() < digests.len() {
            self.add_listings(digests, &mut named).await?;
        }
        Ok(named)
    }

    async fn add_listings(&self, digests: &[String], named: &mut HashSet<String>) -> Result<()> {
        let asked: HashSet<&str> = digests.iter().map(String::as_str).collect();
        let mut last = String::new();
        loop {
            let rows = sql("SELECT id, pinned FROM filesets WHERE pinned IS NOT NULL AND id > $1
                            ORDER BY id LIMIT $2");
            let rows = rows.text(&last).int(page()).all(self.0.reads()).await?;
            let Some(end) = rows.last() else { return Ok(()) };
            last = end.text("id")?;
            for row in &rows {
                let listing: ObjectRef = row.json("pinned")?;
                if asked.contains(&*listing.sha256) {
                    named.insert(listing.sha256);
                }
            }
        }
    }

    /// What unfinished jobs pin, by the jobs' ids: those after one, or the first of all.
    /// Their snapshots are read one by one: each may be tens of megabytes, with the job's input.
    pub async fn pinned(&self, after: Option<&str>) -> Result<Vec<Pins>> {
        let jobs = sql("SELECT id FROM jobs WHERE ended_at IS NULL AND deleted_at IS NULL
             AND id > $1 ORDER BY id LIMIT $2");
        let jobs = jobs.text(after.unwrap_or_default()).int(page()).all(self.0.reads()).await?;
        let mut pinned = Vec::new();
        for row in &jobs {
            let job = row.text("id")?;
            let found = sql("SELECT job AS id, snapshot FROM job_inputs WHERE job = $1");
            let found = found.text(&job).one(self.0.reads()).await?;
            let listings = found.iter().flat_map(sources).filter_map(|source| match source {
                Source::Files { listing, .. } => Some(listing),
                Source::Bundle { .. } => None,
            });
            pinned.push(Pins { listings: listings.collect(), job });
        }
        Ok(pinned)
    }
}

fn page() -> i64 {
    i64::try_from(AT_ONCE).unwrap_or(i64::MAX)
}

/// What the snapshot in a row names. One that cannot be read runs nothing.
pub(super) fn sources(row: &Row) -> Vec<Source> {
    let read: Result<Option<Sources>> = row.optional_json("snapshot");
    let read = read.unwrap_or_else(|error| {
        let job = row.text("id").unwrap_or_default();
        tracing::warn!(job.id = job, %error, "the snapshot of a job cannot be read");
        None
    });
    let named = read.into_iter().flat_map(|Sources { base, mounts, ethos }| {
        let mounts = mounts.into_iter().map(|mount| mount.source);
        base.into_iter().chain(mounts).chain(ethos)
    });
    named.collect()
}
