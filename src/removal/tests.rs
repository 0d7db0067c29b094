//! What is removed of a job from the queue, and in which order.

use bytes::Bytes;
use streams::broker::{Expect, Publication};
use streams::memory::Memory;
use streams::topology::Limits;

use super::*;

#[test]
fn the_first_fact_goes_first_and_the_last_word_last() {
    let job = JobId::new();
    let found: Vec<_> = subjects("team.a", job).collect();
    let expected = [
        (StreamName::Intake, format!("jobs.submitted.team%2Ea.{job}")),
        (StreamName::Jobs, format!("jobs.resolved.team%2Ea.{job}")),
        (StreamName::Jobs, format!("jobs.staged.team%2Ea.{job}")),
        (StreamName::Jobs, format!("jobs.invoked.team%2Ea.{job}")),
        (StreamName::Jobs, format!("jobs.acted.team%2Ea.{job}")),
        (StreamName::Jobs, format!("jobs.archived.team%2Ea.{job}")),
        (StreamName::Logs, format!("logs.team%2Ea.{job}")),
        (StreamName::Status, format!("status.team%2Ea.{job}")),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_job_is_purged_and_no_other() {
    let broker = Memory::new(Limits::default());
    let (gone, stays) = (JobId::new(), JobId::new());
    for job in [gone, stays] {
        for (_, subject) in subjects("default", job) {
            let payload = Bytes::from_static(b"{}");
            let expect = Expect::Any;
            let publication =
                Publication { subject, payload, message_id: None, expect, traceparent: None };
            broker.publish(publication).await.expect("it is stored");
        }
        for bucket in Bucket::ALL {
            let made = broker.create(bucket, &job.to_string(), Bytes::new()).await;
            assert!(made.expect("the queue answers").is_some());
        }
        let action = claim::action_key(job);
        let made = broker.create(Bucket::Claims, &action, Bytes::new()).await;
        assert!(made.expect("the queue answers").is_some());
    }
    for _ in 0..2 {
        purge(&broker, "default", gone).await.expect("it may be done again");
    }
    for (job, is_there) in [(gone, false), (stays, true)] {
        for (stream, subject) in subjects("default", job) {
            let last = broker.last(stream, &subject).await.expect("the queue answers");
            assert_eq!(last.is_some(), is_there, "{subject}");
        }
        for bucket in Bucket::ALL {
            let entry = broker.get(bucket, &job.to_string()).await.expect("the queue answers");
            assert_eq!(entry.is_some(), is_there, "{bucket:?}");
        }
        let entry = broker.get(Bucket::Claims, &claim::action_key(job)).await;
        assert_eq!(entry.expect("the queue answers").is_some(), is_there, "the action's claim");
    }
}
