//! What is there to be projected: the deliveries of the projector's three consumers, in batches.

use futures_util::stream::{BoxStream, SelectAll, select_all};
use futures_util::{FutureExt, StreamExt};
use streams::broker::{Broker, Delivery, Error};
use streams::topology;

use super::Failed;

/// Deliveries that are taken in together, and that each consumer sends ahead.
const BATCH: usize = 256;

pub(super) struct Intake(SelectAll<BoxStream<'static, Result<Delivery, Error>>>);

impl Intake {
    pub(super) async fn open(broker: &dyn Broker) -> Result<Self, Failed> {
        let mut consumers = Vec::new();
        for consumer in topology::projector_consumers() {
            broker.ensure_consumer(&consumer).await?;
            consumers.push(broker.deliveries(&consumer, BATCH).await?);
        }
        Ok(Self(select_all(consumers)))
    }

    /// Waits for a delivery and takes all that are there with it. It does not wait for more:
    /// while one batch is written the next one gathers, so batches grow by themselves.
    pub(super) async fn batch(&mut self) -> Result<Vec<Delivery>, Failed> {
        let mut batch = vec![self.0.next().await.ok_or(Failed::Ended)??];
        while batch.len() < BATCH {
            match self.0.next().now_or_never() {
                Some(delivery) => batch.push(delivery.ok_or(Failed::Ended)??),
                None => break,
            }
        }
        Ok(batch)
    }
}
