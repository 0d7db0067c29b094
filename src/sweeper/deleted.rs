//! Objects that came to a deleted job after its deletion: of a worker that was still at work on it,
//! or woke up late. Nobody would ever look below its prefix again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use workers::store::{Listed, Store, key};

use super::Error;
use crate::records::Records;

/// How often it looks, and soon after the start.
const LOOK: Duration = Duration::from_secs(3600);
const FIRST_LOOK: Duration = Duration::from_secs(20);

/// How far back a look goes, and the first one: a server may have been away for long.
const BACK: SignedDuration = SignedDuration::from_hours(4);
const FIRST_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Looks again and again, for as long as it is asked to.
pub(super) async fn sweep(records: &Records, store: &Store) {
    let (mut pause, mut back) = (FIRST_LOOK, FIRST_BACK);
    loop {
        tokio::time::sleep(pause).await;
        match look(records, store, Timestamp::now() - back).await {
            Ok(objects) => {
                if objects > 0 {
                    tracing::info!(objects, "removed what came to deleted jobs");
                }
                back = BACK;
            }
            Err(error) => tracing::warn!(%error, "could not remove what came to deleted jobs"),
        }
        pause = LOOK;
    }
}

/// Removes what there is of the jobs that were deleted since; how many objects that were.
pub(crate) async fn look(
    records: &Records,
    store: &Store,
    since: Timestamp,
) -> Result<usize, Error> {
    let deleted = records.jobs().deleted_since(since).await?;
    if deleted.is_empty() {
        return Ok(0);
    }
    // Once for all of them: the own store goes through the whole bucket for each listing.
    let is_theirs = |it: &Listed| key::job_of(&it.key).is_some_and(|job| deleted.contains(&job));
    Ok(store.delete_those(key::JOBS, is_theirs).await?)
}
