//! Progress: while a step works, the server is told so, so that it gives the delivery to nobody
//! else.

use streams::broker::{Delivery, Settle};
use streams::topology::ACK_WAIT;
use tokio::task::JoinHandle;

/// Reports progress until it is dropped.
pub(super) struct KeepAlive(Option<JoinHandle<()>>);

impl KeepAlive {
    /// Begins to report for a delivery.
    pub(super) fn start(delivery: &Delivery) -> Self {
        let Some(settler) = delivery.settler() else { return Self(None) };
        Self(Some(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(ACK_WAIT / 3);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                if let Err(error) = settler.settle(Settle::Progress).await {
                    tracing::warn!(%error, "could not report progress");
                }
            }
        })))
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
