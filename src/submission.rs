//! Submission: the first fact of a job that has a record. The record itself is made in
//! `records`, out of what `catalog` prepared.

use streams::broker::{self, Broker, Expect, Publication};
use streams::envelope::Envelope;
use streams::fact::Submitted;
use streams::phase::Phase;

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
    let payload = envelope.encode().map_err(|error| broker::Error::Refused {
        what: format!("submission of job {}", job.id),
        reason: error.to_string(),
    })?;
    let publication = Publication {
        subject: envelope.subject(),
        payload: payload.into(),
        message_id: Some(job.id.message_id(Phase::Submitted)),
        expect: Expect::Empty,
        traceparent: None,
    };
    broker.publish(publication).await.map(drop)
}
