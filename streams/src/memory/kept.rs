//! What a stream of the broker in memory keeps, and when it takes one more message.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::broker::{Error, Expect, Publication, Published, Room, Stored};
use crate::topology::{DUPLICATE_WINDOW, StreamSpec};

/// The messages of a stream.
pub(super) struct Kept {
    pub(super) spec: StreamSpec,
    pub(super) messages: BTreeMap<u64, Stored>,
    pub(super) next: u64,
    /// Message ids, and when each came.
    pub(super) ids: BTreeMap<String, Instant>,
}

impl Kept {
    pub(super) fn last(&self, subject: &str) -> Option<&Stored> {
        self.messages.values().rev().find(|message| message.subject == subject)
    }

    pub(super) fn room(&self) -> Option<Room> {
        let kept: usize = self.messages.values().map(|message| message.payload.len()).sum();
        let of = self.spec.max_bytes;
        (of > 0).then(|| Room { free: of.saturating_sub(kept as u64), of })
    }

    pub(super) fn publish(&mut self, publication: Publication) -> Result<Published, Error> {
        let subject = publication.subject;
        let now = Instant::now();
        let known = publication.message_id.as_ref().and_then(|id| self.ids.get(id));
        if known.is_some_and(|at| now.duration_since(*at) < DUPLICATE_WINDOW) {
            return Ok(Published::Exists);
        }
        let last = self.last(&subject).map_or(0, |message| message.sequence);
        let expected = match publication.expect {
            Expect::Any => last,
            Expect::Empty => 0,
            Expect::Last(sequence) => sequence,
        };
        if expected != last {
            return Ok(Published::Exists);
        }
        let there = self.messages.values().filter(|message| message.subject == subject).count();
        let limit = self.spec.per_subject as usize;
        if limit > 0 && there >= limit {
            if self.spec.refuse_second {
                return Ok(Published::Exists);
            }
            let oldest = self.messages.values().find(|message| message.subject == subject);
            if let Some(sequence) = oldest.map(|message| message.sequence) {
                self.messages.remove(&sequence);
            }
        }
        if self.room().is_some_and(|room| publication.payload.len() as u64 > room.free) {
            return Err(Error::Full(format!("of subject {subject}")));
        }
        let sequence = self.next;
        self.next += 1;
        if let Some(id) = publication.message_id {
            self.ids.insert(id, now);
        }
        let at = Timestamp::now();
        let Publication { payload, traceparent, .. } = publication;
        self.messages.insert(sequence, Stored { subject, sequence, payload, at, traceparent });
        Ok(Published::Stored(sequence))
    }
}
