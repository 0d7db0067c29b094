//! Messages that lead to nothing. A worker that meets one notes it, and need not be allowed to
//! remove it: nothing but this ever does, and each takes up room that submissions need.

use serde::Deserialize;
use streams::broker::Broker;
use streams::phase::Phase;
use streams::topology::{StreamName, leftovers_consumer};

use super::Error;

/// Notes that are read at once.
const BATCH: usize = 100;

/// What a note says of its message.
#[derive(Deserialize)]
struct Note {
    subject: String,
    sequence: u64,
}

/// Removes what was noted. A message that came later to the same subject is another one.
pub(super) async fn remove(broker: &dyn Broker) -> Result<(), Error> {
    let consumer = leftovers_consumer();
    loop {
        let notes = broker.fetch(&consumer, BATCH).await?;
        if notes.is_empty() {
            return Ok(());
        }
        for note in notes {
            if let Some((stream, sequence)) = place(&note.message.payload) {
                broker.discard(stream, sequence).await?;
            }
            note.ack().await?;
        }
    }
}

/// Where the message is; `None` for a note that does not say.
fn place(note: &[u8]) -> Option<(StreamName, u64)> {
    let Note { subject, sequence } = serde_json::from_slice(note).ok()?;
    let phase: Phase = subject.split('.').nth(1)?.parse().ok()?;
    Some((StreamName::of(phase), sequence))
}
