//! The projector: turns facts into rows, in batches, and tells the world what became visible.
//!
//! A batch is acknowledged after its rows are committed and its status messages are confirmed.
//! Whatever dies in between is delivered again, and both are harmless to repeat. What is no fact
//! is passed over here: the step that consumes it says so on `jobs.refused`.

mod intake;
mod overtaken;
mod reading;

pub(crate) use reading::change;

use std::sync::Arc;
use std::time::Duration;

use backon::BackoffBuilder;
use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use streams::broker::{Broker, Delivery};
use streams::phase::Phase;
use streams::status::StatusMessage;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::records::{self, Change, Projected, Records};
use crate::status::{self, By};
use intake::Intake;
use overtaken::Overtaken;

/// A fact of a job without a record waits so long for its record before it is let go.
const RECORD_DUE: SignedDuration = SignedDuration::from_secs(10);

/// And is looked at again after this.
const RECORD_PAUSE: Duration = Duration::from_secs(1);

/// A message that has waited for so long is worth a word.
const BEHIND: SignedDuration = SignedDuration::from_secs(10);

/// Why a batch was not taken in. It is delivered again.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Broker(#[from] streams::broker::Error),
    #[error(transparent)]
    Records(#[from] records::Error),
    #[error(transparent)]
    Status(#[from] status::Error),
    #[error("nats ended the deliveries")]
    Ended,
}

/// Runs until it is told to stop. Trouble is waited out.
pub async fn run(broker: Arc<dyn Broker>, records: Records, stop: CancellationToken) {
    let pauses = || {
        backon::ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(200))
            .with_max_delay(Duration::from_secs(5))
            .without_max_times()
            .with_jitter()
            .build()
    };
    let mut pause = pauses();
    while !stop.is_cancelled() {
        let worked = follow(&*broker, &records, &stop, || pause = pauses()).await;
        let Err(error) = worked else { return };
        let wait = pause.next().unwrap_or(Duration::from_secs(5));
        tracing::warn!(%error, retry_in_ms = wait.as_millis(), "projector is interrupted");
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Takes in batch after batch; ends well only when it is told to stop.
async fn follow(
    broker: &dyn Broker,
    records: &Records,
    stop: &CancellationToken,
    mut went_well: impl FnMut(),
) -> Result<(), Failed> {
    let mut intake = Intake::open(broker).await?;
    let mut overtaken = Overtaken::default();
    loop {
        let batch = tokio::select! {
            batch = intake.batch() => batch?,
            () = stop.cancelled() => return Ok(()),
        };
        take_in(broker, records, &mut overtaken, batch).await?;
        went_well();
    }
}

/// Deliveries that are dropped on the way out are given back by themselves.
async fn take_in(
    broker: &dyn Broker,
    records: &Records,
    overtaken: &mut Overtaken,
    batch: Vec<Delivery>,
) -> Result<(), Failed> {
    let read = |delivery: &Delivery| {
        let redelivered = delivery.times > 1;
        change(&delivery.message).map(|change| Change { redelivered, ..change })
    };
    let changes: Vec<Option<Change>> = batch.iter().map(read).collect();
    tell_lag(&batch);
    let mut known: Vec<Change> = changes.iter().flatten().cloned().collect();
    known.extend(overtaken.of(broker, &known).await?);
    let Projected { messages, unknown } = records.project(&known).await?;
    overtaken.note(&known);
    // One job's messages go out one after another, since the last one is its present state.
    let jobs = messages.chunk_by(|one, next| one.job == next.job);
    try_join_all(jobs.map(|messages| publish(broker, messages))).await?;
    let settled = batch.into_iter().zip(changes).map(|(delivery, change)| {
        let missing = change.filter(|change| unknown.contains(&change.job));
        settle(delivery, missing)
    });
    try_join_all(settled).await?;
    Ok(())
}

/// What waited for long says that the projector is behind, or was away.
fn tell_lag(batch: &[Delivery]) {
    let new = batch.iter().filter(|delivery| delivery.times == 1);
    let Some(oldest) = new.map(|delivery| delivery.message.at).min() else { return };
    let lag = Timestamp::now().duration_since(oldest);
    if lag > BEHIND {
        let (seconds, messages) = (lag.as_secs_f64(), batch.len());
        tracing::warn!(lag.seconds = seconds, batch.messages = messages, "projector is behind");
    } else {
        tracing::trace!(lag.seconds = lag.as_secs_f64(), batch.messages = batch.len(), "batch");
    }
}

/// Tells the world of one job, in the order of its messages. Telling it again is harmless.
pub(crate) async fn publish(
    broker: &dyn Broker,
    messages: &[StatusMessage],
) -> Result<(), status::Error> {
    for message in messages {
        let StatusMessage { job, status, phase, .. } = message;
        let message_id = format!("{job}:status:{phase}");
        if status::tell(broker, By::Projector, message_id, message).await? {
            metrics::advanced(*phase);
            if *phase == Phase::Archived {
                metrics::ended(*status, message.code);
            }
            tracing::info!(job.id = %job, %status, %phase, "job advanced");
        }
    }
    Ok(())
}

/// `missing` is what it says of a job without a record. A submission makes its record later, and
/// that record says all that the fact does; a later phase waits for it a little.
async fn settle(delivery: Delivery, missing: Option<Change>) -> Result<(), streams::broker::Error> {
    let waits = missing.is_some_and(|change| !change.is_submission())
        && Timestamp::now().duration_since(delivery.message.at) < RECORD_DUE;
    if waits { delivery.nak(RECORD_PAUSE).await } else { delivery.ack().await }
}

#[cfg(test)]
mod tests;
