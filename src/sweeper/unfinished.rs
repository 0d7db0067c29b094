//! What was begun in the object store and left: multipart uploads, and uploads of files that wait
//! for their digest. Those who end properly take theirs away; a process that died could not.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use workers::store::{self, Store, key};

/// How often it looks, and soon after the start: listing a bucket is work for the store.
const LOOK: Duration = Duration::from_secs(3600);
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// Looks again and again, for as long as it is asked to.
pub(super) async fn sweep(store: &Store, age: Duration) {
    let mut pause = FIRST_LOOK.min(age);
    loop {
        tokio::time::sleep(pause).await;
        match look(store, age).await {
            Ok((0, 0)) => {}
            Ok((uploads, objects)) => {
                tracing::info!(uploads, objects, "removed what was begun in the store and left");
            }
            Err(error) => tracing::warn!(%error, "could not remove what was left in the store"),
        }
        pause = LOOK.min(age);
    }
}

/// Uploads given up and objects removed.
async fn look(store: &Store, age: Duration) -> Result<(usize, usize), store::Error> {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    // Longer than there is time: nothing is that old.
    let Ok(before) = Timestamp::now().checked_sub(age) else { return Ok((0, 0)) };
    let before = Some(before.as_second());
    let mut uploads = 0;
    for prefix in key::PREFIXES {
        uploads += store.abort_below(prefix, before).await?;
    }
    Ok((uploads, store.delete_older(key::INCOMING, before).await?))
}
