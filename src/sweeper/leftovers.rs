//! Messages that lead to nothing. A worker that meets one notes it, and need not be allowed to
//! remove it: nothing but this ever does, and each takes up room that submissions need.

use futures_util::future::try_join_all;
use serde::Deserialize;
use streams::broker::{Broker, Delivery};
use streams::phase::Phase;
use streams::topology::{StreamName, leftovers_consumer};

use super::Error;

/// Notes that are dealt with at once, and how often in one look.
const BATCH: usize = 100;
const BATCHES: usize = 20;

/// What a note says of its message.
#[derive(Deserialize)]
struct Note {
    subject: String,
    sequence: u64,
}

/// Removes what was noted, as far as it comes in one look: whoever publishes more than that keeps
/// nobody else's work from being done. A message that came later to the same subject is another
/// one, and so is one of another subject in a stream that was made anew.
pub(super) async fn remove(broker: &dyn Broker) -> Result<(), Error> {
    let consumer = leftovers_consumer();
    for _ in 0..BATCHES {
        let notes = broker.fetch(&consumer, BATCH).await?;
        if notes.is_empty() {
            break;
        }
        try_join_all(notes.into_iter().map(|note| deal_with(broker, note))).await?;
    }
    Ok(())
}

async fn deal_with(broker: &dyn Broker, note: Delivery) -> Result<(), Error> {
    if let Some((stream, Note { subject, sequence })) = read(&note.message.payload)
        && broker.at(stream, sequence).await?.is_some_and(|message| message.subject == subject)
    {
        broker.discard(stream, sequence).await?;
    }
    Ok(note.ack().await?)
}

/// Which stream the message is in, and what is said of it; `None` for a note that does not say.
fn read(note: &[u8]) -> Option<(StreamName, Note)> {
    let note: Note = serde_json::from_slice(note).ok()?;
    let phase: Phase = note.subject.split('.').nth(1)?.parse().ok()?;
    Some((StreamName::of(phase), note))
}
