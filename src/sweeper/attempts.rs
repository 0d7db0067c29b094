//! What attempts of a finished job left in the store and no fact lists: results of one that was
//! lost while it saved, or of a worker that came late. It is told by the job's facts and done,
//! therefore, right before they leave the streams.

use std::collections::HashSet;

use streams::broker::{self, Broker};
use streams::envelope::Envelope;
use streams::fact::{Acted, Fact, Invoked, SavedResult};
use streams::id::JobId;
use workers::store::{Store, key};

use crate::removal::Error;

/// Removes them, and says how many. Does nothing for a job whose facts are gone: then it was done.
pub(super) async fn sweep(
    broker: &dyn Broker,
    store: &Store,
    workspace: &str,
    job: JobId,
) -> Result<usize, Error> {
    let invoked = fact::<Invoked>(broker, workspace, job).await?;
    let acted = fact::<Acted>(broker, workspace, job).await?;
    let (Some(invoked), Some(acted)) = (invoked, acted) else { return Ok(0) };
    let listed = invoked.results.into_iter().chain(acted.results).flat_map(keys);
    let listed: HashSet<String> = listed.collect();
    let all = key::job(workspace, job);
    // Nobody works for it any more who could finish one.
    store.abort_below(&all, None).await?;
    let is_left =
        |key: &str| key.strip_prefix(&all).is_some_and(is_of_an_attempt) && !listed.contains(key);
    Ok(store.delete_those(&all, |object| is_left(&object.key)).await?)
}

/// The fact of a job, if it stands and can be read.
async fn fact<F: Fact>(
    broker: &dyn Broker,
    workspace: &str,
    job: JobId,
) -> Result<Option<F>, Error> {
    match Envelope::stored(broker, workspace, job).await {
        Ok(stored) => Ok(stored.map(|envelope| envelope.fact)),
        Err(error @ broker::Error::Refused { .. }) => {
            tracing::warn!(job.id = %job, %error, "a fact cannot be read");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The keys of a result.
fn keys(result: SavedResult) -> impl Iterator<Item = String> {
    let changes = result.output_changes.and_then(|changes| changes.all);
    std::iter::once(result.object).chain(changes).map(|object| object.key)
}

/// Whether a key below that of its job is one of an attempt's results: `<attempt>/…`.
fn is_of_an_attempt(key: &str) -> bool {
    key.split_once('/').is_some_and(|(first, _)| first.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_a_number_is_of_an_attempt() {
        for key in ["1/output_workdir.tar.gz", "12/files/a", "1/output_workdir/changes.json"] {
            assert!(is_of_an_attempt(key), "{key}");
        }
        for key in ["manifest.json", "input/1.tar.gz", "log/1-0-2.jsonl", "1", "", "-1/a", "a/1/b"]
        {
            assert!(!is_of_an_attempt(key), "{key}");
        }
    }
}
