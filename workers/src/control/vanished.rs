//! Jobs of which the queue holds no fact although their records say that they are on their way:
//! what the queue had of them is lost. Nobody can say how far such a job came, so its agent is not
//! started, maybe for a second time; the job fails, and leaves its facts as every job does.

use std::sync::Arc;

use streams::broker::{Broker, Error, Publication};
use streams::claim::Decision;
use streams::code::Code;
use streams::envelope::Envelope;
use streams::fact::{Fact, Invoked, Produced, Resolved, Staged, Submitted};
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::Part;

use super::{CANCELLED, HERE, stands};
use crate::ends::Ends;

/// Whether a fact that a job's record knows of is not there: the last one, or the first, which is
/// the last that [`give_up`] writes.
pub async fn is_vanished(
    broker: &dyn Broker,
    workspace: &str,
    job: JobId,
    phase: Phase,
) -> Result<bool, Error> {
    if !stands(broker, phase, workspace, job).await? {
        return Ok(true);
    }
    // Before that, whatever writes the first fact is a submission, and a job's facts follow it.
    Ok(phase >= Phase::Invoked && !stands(broker, Phase::Submitted, workspace, job).await?)
}

/// Writes the facts of such a job from the last that is decided down to the first: while an
/// earlier one is missing no step begins, and once it is there its step finds the next one. How the
/// job ends may be known from its record.
pub async fn give_up(
    broker: &Arc<dyn Broker>,
    first: Envelope<Submitted>,
    snapshot: Option<Part>,
    known: Option<Outcome>,
) -> Result<(), Error> {
    let decided = Ends::new(Arc::clone(broker)).decide(first.job, Decision::Closed, HERE).await?;
    let outcome = match (decided, known.filter(|known| !known.succeeded())) {
        (_, Some(known)) => known,
        (Decision::Cancel, None) => Outcome::Cancelled { message: CANCELLED.to_owned() },
        // Also of an agent that succeeded: whether its action was run is lost as well.
        (Decision::Closed, None) => {
            let message = "the queue lost what it held of the job while the job was on its way";
            Outcome::Failed { code: Code::WorkerLost, message: message.to_owned() }
        }
    };
    let resolved = Resolved { snapshot, outcome: Some(outcome.clone()) };
    write(&**broker, &first, Invoked::passed_on(outcome.clone())).await?;
    write(&**broker, &first, Staged::passed_on(outcome)).await?;
    write(&**broker, &first, resolved).await?;
    publish(&**broker, &first).await
}

async fn write<F: Fact>(
    broker: &dyn Broker,
    first: &Envelope<Submitted>,
    fact: F,
) -> Result<(), Error> {
    publish(broker, &first.with(fact)).await
}

async fn publish<F: Fact>(broker: &dyn Broker, envelope: &Envelope<F>) -> Result<(), Error> {
    // The server may remember the id of the fact that is lost. That the subject is empty decides.
    let publication = Publication { message_id: None, ..envelope.publication()? };
    broker.publish(publication).await.map(drop)
}
