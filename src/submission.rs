//! Submission: the first fact of a job that has a record. The record itself is made in
//! `records`, out of what `catalog` prepared.

use streams::broker::{self, Broker};
use streams::envelope::Envelope;
use streams::fact::Submitted;

use crate::records::Job;

/// Publishes the first fact of a job. Doing it again is harmless.
pub async fn submit(broker: &dyn Broker, job: &Job) -> Result<(), broker::Error> {
    let envelope = Envelope {
        job: job.id,
        workspace: job.workspace.clone(),
        at: job.created_at,
        traceparent: None,
        fact: Submitted { spec: None, name: Some(job.name.clone()) },
    };
    broker.publish(envelope.publication()?).await.map(drop)
}
