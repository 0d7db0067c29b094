//! Submission: the first fact of a job that has a record. The record itself is made in
//! `records`, out of what `catalog` prepared.

use streams::broker::{self, Broker, Published};
use streams::envelope::Envelope;
use streams::fact::{Recorded, Submitted};
use workers::store::{self, Store, key};
use workers::trace;

use crate::records::Job;
use crate::telemetry::caller;

/// Why a submission is not published. The record stands; the sweeper comes back to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The queue.
    #[error(transparent)]
    Broker(#[from] broker::Error),
    /// The store, which keeps a record that is too large for a message.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The record has no JSON form.
    #[error("record of the job is no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Publishes the first fact of a job. Doing it again is harmless while the job's facts stand.
pub async fn submit(broker: &dyn Broker, store: &Store, job: &Job) -> Result<(), Error> {
    let submitted = first_fact(store, job).await?;
    if let Published::Stored(_) = broker.publish(submitted.publication()?).await? {
        trace::submitted(&submitted, "http");
    }
    Ok(())
}

/// The first fact of a job, in its envelope.
pub async fn first_fact(store: &Store, job: &Job) -> Result<Envelope<Submitted>, Error> {
    let recorded = serde_json::to_value(recorded(job))?;
    let record = store.part(&key::record(&job.workspace, job.id), recorded).await?;
    Ok(Envelope {
        job: job.id,
        workspace: job.workspace.clone(),
        at: job.created_at,
        traceparent: caller::traceparent(),
        fact: Submitted { spec: None, name: Some(job.name.clone().into()), record: Some(record) },
    })
}

fn recorded(job: &Job) -> Recorded {
    Recorded {
        description: job.description.clone(),
        ownership: job.ownership.clone(),
        custom_fields: job.custom_fields.clone(),
        submission: job.submission.clone(),
        rerun_of: job.rerun_of,
        batch: job.batch.clone(),
    }
}
