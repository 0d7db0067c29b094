//! Blobs that nothing names any more: not a fileset, as the bytes of a file or as its frozen
//! listing, and not the snapshot of an unfinished job.
//!
//! A blob is marked when it is found unnamed, and collected when its mark is old enough and it was
//! not named meanwhile. Whoever names a blob looks afterwards whether it is there, and stores it
//! again otherwise; whoever collects one keeps a copy, looks afterwards whether it is named, and
//! then puts it back. One of the two sees what the other has done, whatever came first.

use std::collections::HashSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use streams::snapshot::{FileEntry, ObjectRef};
use workers::store::{self, Listed, Store, key};

use crate::records;
use crate::records::Records;

/// How often it looks: listing a bucket is work for the store.
const LOOK: Duration = Duration::from_secs(3600);
const FIRST_LOOK: Duration = Duration::from_secs(20);

/// Looks again and again, for as long as it is asked to.
pub(super) async fn sweep(records: &Records, store: &Store, age: Duration) {
    let (pause, mut first) = (LOOK.min(age).max(Duration::from_secs(1)), Some(FIRST_LOOK));
    loop {
        tokio::time::sleep(first.take().map_or(pause, |first| first.min(pause))).await;
        match (Collector { records, store }).look(age).await {
            Ok(0) => {}
            Ok(blobs) => tracing::info!(blobs, "removed blobs that nothing names"),
            Err(error) => tracing::warn!(%error, "could not remove blobs that nothing names"),
        }
    }
}

/// Why a look was broken off; the next one begins anew.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Records(#[from] records::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What it lists must not be taken for unnamed.
    #[error("listing {key} cannot be read: {source}")]
    Listing { key: String, source: serde_json::Error },
}

struct Collector<'a> {
    records: &'a Records,
    store: &'a Store,
}

impl Collector<'_> {
    /// Blobs that were collected.
    async fn look(&self, age: Duration) -> Result<usize, Error> {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        // Longer than there is time: nothing is that old.
        let Ok(before) = Timestamp::now().checked_sub(age) else { return Ok(0) };
        let before = before.as_second();
        let collected = self.settle(before).await?;
        self.mark(before).await?;
        Ok(collected)
    }

    /// Marks the blobs that nothing names. One that is new may be about to be named.
    async fn mark(&self, before: i64) -> Result<(), Error> {
        let mut page = None;
        loop {
            let listed = self.store.list(key::BLOBS, page).await?;
            let old = listed.objects.iter().filter(|object| object.is_older(before));
            let digests: Vec<_> = old.filter_map(digest).collect();
            let named = self.named(&digests).await?;
            for digest in digests.iter().filter(|digest| !named.contains(*digest)) {
                let mark = key::unnamed_mark(digest);
                if self.store.size(&mark).await?.is_none() {
                    self.store.put(&mark, "unnamed".into()).await?;
                }
            }
            page = listed.next;
            if page.is_none() {
                return Ok(());
            }
        }
    }

    /// Goes through what was marked, and through the copies of what was collected.
    async fn settle(&self, before: i64) -> Result<usize, Error> {
        let (mut collected, mut page) = (0, None);
        loop {
            let listed = self.store.list(key::UNNAMED, page).await?;
            let digests: Vec<_> = listed.objects.iter().filter_map(digest).collect();
            let named = self.named(&digests).await?;
            let mut gone = Vec::new();
            for object in &listed.objects {
                let Some(digest) = digest(object) else { continue };
                let is_mark = object.key == key::unnamed_mark(&digest);
                if named.contains(&digest) {
                    self.put_back(&digest).await?;
                    self.store.delete(&object.key).await?;
                } else if object.is_older(before) {
                    if is_mark && self.take_away(&digest).await? {
                        gone.push(digest);
                    }
                    self.store.delete(&object.key).await?;
                }
            }
            // Somebody may have named one since it was looked for.
            for digest in self.named(&gone).await? {
                self.put_back(&digest).await?;
            }
            collected += gone.len();
            page = listed.next;
            if page.is_none() {
                return Ok(collected);
            }
        }
    }

    /// Removes a blob, of which a copy stays for a while; false when there is none.
    async fn take_away(&self, digest: &str) -> Result<bool, Error> {
        let (blob, copy) = (key::blob(digest), key::unnamed_copy(digest));
        if !self.store.duplicate(&blob, &copy).await? {
            return Ok(false);
        }
        self.store.delete(&blob).await?;
        Ok(true)
    }

    /// Brings a blob back that is named and was taken away.
    async fn put_back(&self, digest: &str) -> Result<(), Error> {
        let blob = key::blob(digest);
        if self.store.size(&blob).await?.is_none()
            && self.store.duplicate(&key::unnamed_copy(digest), &blob).await?
        {
            tracing::info!(digest, "put a blob back that was named again");
        }
        Ok(())
    }

    /// Those that something names.
    async fn named(&self, digests: &[String]) -> Result<HashSet<String>, Error> {
        let blobs = self.records.blobs();
        let mut named = blobs.in_filesets(digests).await?;
        let rest = digests.iter().filter(|digest| !named.contains(*digest));
        let rest: HashSet<String> = rest.cloned().collect();
        let (mut seen, mut last) = (HashSet::new(), None::<String>);
        while !rest.is_empty() {
            let pins = blobs.pinned(last.as_deref()).await?;
            let Some(end) = pins.last() else { break };
            last = Some(end.job.clone());
            for listing in pins.into_iter().flat_map(|pins| pins.listings) {
                if seen.insert(listing.sha256.clone()) {
                    let listed = self.listed(&listing).await?;
                    named.extend(listed.into_iter().filter(|digest| rest.contains(digest)));
                }
            }
        }
        Ok(named)
    }

    /// A listing and what it lists. One that is gone lists nothing: its job fails for it.
    async fn listed(&self, listing: &ObjectRef) -> Result<Vec<String>, Error> {
        let entries = self.store.read(listing).await?.unwrap_or_default();
        let lines = entries.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut listed = vec![listing.sha256.clone()];
        for line in lines {
            let entry: FileEntry = serde_json::from_slice(line)
                .map_err(|source| Error::Listing { key: listing.key.clone(), source })?;
            listed.push(entry.sha256);
        }
        Ok(listed)
    }
}

/// The digest in an object's key: what follows the last slash, up to a dot.
fn digest(object: &Listed) -> Option<String> {
    let (_, name) = object.key.rsplit_once('/')?;
    let digest = name.split_once('.').map_or(name, |(digest, _)| digest);
    let is_one = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| digest.to_owned())
}
