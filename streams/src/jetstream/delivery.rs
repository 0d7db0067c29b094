//! One arrival of a message, and the words that may be said about it.

use std::sync::Arc;

use async_nats::jetstream::{AckKind, message::Acker};
use async_trait::async_trait;

use super::{timestamp, traceparent, unavailable};
use crate::broker::{Delivery, Error, Settle, Settler, Stored};

struct NatsSettler(Acker);

#[async_trait]
impl Settler for NatsSettler {
    async fn settle(&self, settle: Settle) -> Result<(), Error> {
        let said = match settle {
            Settle::Ack => self.0.double_ack().await,
            Settle::Term => self.0.double_ack_with(AckKind::Term).await,
            Settle::Nak(after) => self.0.ack_with(AckKind::Nak(Some(after))).await,
            Settle::Progress => self.0.ack_with(AckKind::Progress).await,
        };
        said.map_err(unavailable)
    }
}

pub(super) fn wrap(message: async_nats::jetstream::Message) -> Result<Delivery, Error> {
    let (sequence, times, at) = {
        let info = message.info().map_err(unavailable)?;
        (
            info.stream_sequence,
            u64::try_from(info.delivered).unwrap_or(1),
            timestamp(info.published),
        )
    };
    let traceparent = message.headers.as_ref().and_then(traceparent);
    let (message, acker) = message.split();
    let stored = Stored {
        subject: message.subject.to_string(),
        sequence,
        payload: message.payload,
        at,
        traceparent,
    };
    Ok(Delivery::new(stored, times, Arc::new(NatsSettler(acker))))
}
