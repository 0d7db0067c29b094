//! The body of every step's loop: decode, look whether it is done, run, publish, acknowledge.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use jiff::Timestamp;
use serde_json::json;
use streams::broker::{self, Broker, Delivery, Expect, Publication, Published, Stored};
use streams::envelope::{Envelope, Undecodable};
use streams::fact::{Fact, Invoked, Produced};
use streams::id::JobId;
use streams::phase::{Phase, Share};
use streams::subject;
use streams::topology::{self, ACK_WAIT, StreamName};
use streams::trace::TraceParent;
use tokio::time::Instant;
use tracing::Instrument;

use super::keepalive::KeepAlive;
use super::{Runtime, give_back, settle};
use crate::fault::{self, Point};
use crate::meter::{self, Ended};
use crate::step::{Context, Step, StepError};
use crate::trace::{self, JobTrace, Work};

/// A delivery that fails again and again comes back after at most so long.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How soon a job that waits for something outside is looked at again, the first time and at last:
/// soon enough for who lets it go, and not so often that many of them keep others from being
/// looked at.
const HELD_FOR: (Duration, u32) = (Duration::from_secs(2), 5);

/// The same for what this worker has not. Never in step with how often workers look for jobs, or
/// it would be given to the same one again and again.
const NOT_HERE_FOR: Duration = Duration::from_secs(1);

/// Deals with one delivery, to the end.
pub(super) async fn deliver<S: Step>(runtime: &Runtime, step: &S, delivery: Delivery) {
    let (began, again) = (Instant::now(), delivery.times > 1);
    meter::count(|meter| meter.delivered(S::NAME, again));
    let Some((envelope, delivery)) = decode::<S>(runtime, delivery).await else { return };
    let span = tracing::info_span!(
        "step",
        step = %S::NAME,
        job.id = %envelope.job,
        workspace = envelope.workspace,
        delivery = delivery.times,
        trace.id = JobTrace::of(envelope.job, envelope.traceparent.as_deref()).id()
    );
    let ended = decoded(runtime, step, envelope, delivery).instrument(span).await;
    meter::count(|meter| meter.ended(S::NAME, ended, began.elapsed()));
}

/// A fact is part of the trace that it names itself, or else its message's header.
fn read<F: Fact>(message: &Stored) -> Result<Envelope<F>, Undecodable> {
    let envelope = Envelope::decode(&message.subject, &message.payload, message.at)?;
    let header = message.traceparent.as_ref().filter(|it| it.parse::<TraceParent>().is_ok());
    let traceparent = envelope.traceparent.clone().or(header.cloned());
    Ok(Envelope { traceparent, ..envelope })
}

/// Bytes that are no fact go to `jobs.refused` with the reason and never come back.
async fn decode<S: Step>(
    runtime: &Runtime,
    delivery: Delivery,
) -> Option<(Envelope<S::In>, Delivery)> {
    let message = &delivery.message;
    let reason = match read(message) {
        Ok(envelope) => {
            trace::submitted_by_others(&envelope, message);
            return Some((envelope, delivery));
        }
        Err(reason) => reason,
    };
    tracing::warn!(subject = message.subject, %reason, "refused a message that is no fact");
    match note(runtime, message, &reason.to_string()).await {
        Ok(()) => {
            discard::<S>(runtime, delivery).await;
        }
        Err(error) => {
            tracing::warn!(%error, "could not say so, trying again");
            give_back(delivery, Duration::from_secs(5)).await;
        }
    }
    None
}

/// Notes once that a message leads to nothing, and why.
async fn note(runtime: &Runtime, message: &Stored, reason: &str) -> Result<(), broker::Error> {
    let Stored { subject, sequence, payload, .. } = message;
    let shown: String = String::from_utf8_lossy(payload).chars().take(4096).collect();
    let note = json!({
        "v": 1, "subject": subject, "sequence": sequence, "reason": reason, "payload": shown,
    });
    let publication = Publication {
        subject: subject::REFUSED.to_owned(),
        payload: note.to_string().into(),
        message_id: Some(format!("refused:{subject}:{sequence}")),
        expect: Expect::Any,
        traceparent: None,
    };
    runtime.broker.publish(publication).await.map(drop)
}

/// Ends a delivery that leads to no fact, and makes room. Says whether it may: where a worker may
/// remove nothing, the sweeper does, which reads the notes.
async fn discard<S: Step>(runtime: &Runtime, delivery: Delivery) -> bool {
    let sequence = delivery.message.sequence;
    settle("terminate", delivery.term()).await;
    let removed = runtime.broker.discard(StreamName::of(S::In::PHASE), sequence).await;
    let may = !matches!(removed, Err(broker::Error::Refused { .. }));
    if may {
        settle("make room after", std::future::ready(removed)).await;
    }
    may
}

/// The same for a message that nobody has noted yet.
async fn discard_noted<S: Step>(runtime: &Runtime, delivery: Delivery) {
    let message = delivery.message.clone();
    if !discard::<S>(runtime, delivery).await {
        let noted = note(runtime, &message, "its job was deleted, or has ended").await;
        settle("note what is left of", std::future::ready(noted)).await;
    }
}

async fn decoded<S: Step>(
    runtime: &Runtime,
    step: &S,
    envelope: Envelope<S::In>,
    delivery: Delivery,
) -> Ended {
    fault::point(S::NAME, Point::Received).await;
    let received = Instant::now();
    let work = Work { since: envelope.at, from: Timestamp::now(), times: delivery.times };
    let keepalive = KeepAlive::start(&delivery);
    let job = Context::new(&envelope, runtime.broker.clone());
    match is_done::<S>(runtime, &job).await {
        Ok(false) => {}
        Ok(true) => {
            // Whoever stored the next fact may have died right after.
            return settled(step, &job, delivery).await;
        }
        Err(error) => {
            tracing::warn!(%error, "could not look for the next fact, trying again");
            give_back(delivery, Duration::from_secs(1)).await;
            return Ended::Again;
        }
    }
    let produced = match step.run(&job, envelope.fact).await {
        Ok(fact) => fact,
        Err(StepError::Deleted) => {
            discard_noted::<S>(runtime, delivery).await;
            return Ended::Dropped;
        }
        Err(StepError::Busy { after }) => {
            give_back(delivery, after).await;
            return Ended::Waits;
        }
        Err(StepError::Held) => {
            let after = HELD_FOR.0 * looks(&delivery);
            give_back(delivery, after).await;
            return Ended::Waits;
        }
        Err(StepError::NotHere { reason }) => {
            tracing::debug!(reason, "left to another worker");
            let after = NOT_HERE_FOR * looks(&delivery);
            give_back(delivery, after).await;
            return Ended::Waits;
        }
        Err(StepError::Retry { after, reason }) => {
            let doublings = u32::try_from(delivery.times.saturating_sub(1)).unwrap_or(6).min(6);
            let wait = (after * 2_u32.pow(doublings)).min(LONGEST_WAIT.max(after));
            tracing::warn!(reason, wait_seconds = wait.as_secs_f64(), "trying again later");
            trace::broken_off(job.trace(), S::NAME, work);
            give_back(delivery, wait).await;
            return Ended::Again;
        }
    };
    let next = Envelope {
        job: job.job,
        workspace: job.workspace.clone(),
        at: Timestamp::now(),
        traceparent: job.traceparent.clone(),
        fact: produced,
    };
    // Whoever slept for long may find that the job was finished and removed by others meanwhile:
    // its facts would be taken for new ones.
    if received.elapsed() > ACK_WAIT {
        match retried(job.job, || is_done::<S>(runtime, &job)).await {
            Ok(false) => {}
            Ok(true) => return settled(step, &job, delivery).await,
            Err(error) => {
                tracing::warn!(%error, "could not look for the next fact, trying again");
                give_back(delivery, Duration::from_secs(1)).await;
                return Ended::Again;
            }
        }
    }
    if let Err(error) = publish(runtime, &next, work).await {
        tracing::warn!(%error, "could not publish the next fact, trying again");
        give_back(delivery, Duration::from_secs(1)).await;
        return Ended::Again;
    }
    fault::point(S::NAME, Point::Published).await;
    let ended = settled(step, &job, delivery).await;
    drop(keepalive);
    fault::point(S::NAME, Point::Acknowledged).await;
    ended
}

/// The next fact stands: tidies up and acknowledges. What could not be tidied up is tidied up at
/// the next delivery.
async fn settled<S: Step>(step: &S, job: &Context, delivery: Delivery) -> Ended {
    match step.settled(job).await {
        Ok(()) => {
            settle("acknowledge", delivery.ack()).await;
            Ended::Done
        }
        Err(error) => {
            tracing::warn!(%error, "could not tidy up after a fact, trying again");
            give_back(delivery, Duration::from_secs(1)).await;
            Ended::Again
        }
    }
}

/// How often a job that waits was looked at; at last that counts no more.
fn looks(delivery: &Delivery) -> u32 {
    u32::try_from(delivery.times).unwrap_or(u32::MAX).clamp(1, HELD_FOR.1)
}

/// Whether the next fact stands already, or the job is finished altogether.
///
/// Asked on every delivery, also the first: a consumer that was made anew delivers old facts as
/// if they were new. The facts of a finished job leave the streams in the order of the chain, so
/// while this fact stands, a next one that does not stand was never there.
async fn is_done<S: Step>(runtime: &Runtime, job: &Context) -> Result<bool, broker::Error> {
    let stands = |phase| stands(&*runtime.broker, phase, &job.workspace, job.job);
    Ok(stands(S::Out::PHASE).await? || !stands(S::In::PHASE).await?)
}

/// Whether a job's fact of a phase stands.
pub(crate) async fn stands(
    broker: &dyn Broker,
    phase: Phase,
    workspace: &str,
    job: JobId,
) -> Result<bool, broker::Error> {
    let subject = subject::fact(phase, workspace, job);
    Ok(broker.last(StreamName::of(phase), &subject).await?.is_some())
}

/// Stores the next fact. That it stands already is as good.
async fn publish<F: Fact>(
    runtime: &Runtime,
    next: &Envelope<F>,
    work: Work,
) -> Result<(), broker::Error> {
    let publication = next.publication()?;
    // Whoever consumes it must be there first, or nobody looks for work of a new workspace.
    if let Some(follows) = F::PHASE.spec().next
        && follows.share == Share::PerWorkspace
    {
        let consumer = topology::step_consumer(follows.step, &next.workspace);
        retried(next.job, || runtime.broker.ensure_consumer(&consumer)).await?;
    }
    let published = retried(next.job, || runtime.broker.publish(publication.clone())).await?;
    let stored = matches!(published, Published::Stored(_));
    tracing::info!(phase = %F::PHASE, stored, "fact");
    // Where another fact stood already, that one says how the job goes on.
    if !stored {
        return Ok(());
    }
    trace::produced(&*runtime.broker, next, work).await;
    pass_on_at_once(runtime, next).await
}

/// A job that is decided needs no slot: it does not wait behind running agents to be told so.
async fn pass_on_at_once<F: Fact>(
    runtime: &Runtime,
    decided: &Envelope<F>,
) -> Result<(), broker::Error> {
    match (F::PHASE, decided.fact.outcome()) {
        (Phase::Staged, Some(outcome)) => {
            let fact = Invoked::passed_on(outcome.clone());
            put(&*runtime.broker, &decided.with(fact)).await
        }
        _ => Ok(()),
    }
}

/// Stores a fact in the place of a step, for a job whose agent is never started.
pub(crate) async fn put<F: Fact>(
    broker: &dyn Broker,
    next: &Envelope<F>,
) -> Result<(), broker::Error> {
    if let Published::Stored(_) = broker.publish(next.publication()?).await? {
        trace::produced(broker, next, Work::now()).await;
    }
    Ok(())
}

/// Work that took hours is not thrown away because the queue is away for a minute. Each job has
/// pauses of its own, so that not all come back at once.
async fn retried<T, Fut>(job: JobId, ask: impl FnMut() -> Fut) -> Result<T, broker::Error>
where
    Fut: Future<Output = Result<T, broker::Error>>,
{
    let policy = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(5))
        .with_max_times(20)
        .with_jitter()
        .with_jitter_seed(job.uuid().as_u64_pair().1);
    // A stream whose servers have yet to agree on a leader looks like one that does not exist.
    let passes = |error: &broker::Error| {
        matches!(error, broker::Error::Unavailable(_) | broker::Error::Missing(_))
    };
    ask.retry(policy).when(passes).await
}
