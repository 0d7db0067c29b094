//! The sweeper over real records and a queue in memory.

use streams::envelope::Envelope;
use streams::fact::{Invoked, Staged};
use streams::memory::Memory;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Limits, StreamName};
use workers::store::StoreConfig;

use super::*;
use crate::records::tests::job::{admit, second};

/// Nothing here asks the store.
fn no_store() -> Store {
    Store::new(&StoreConfig {
        endpoint: "http://127.0.0.1:9".to_owned(),
        bucket: "none".to_owned(),
        access_key: "key".to_owned(),
        secret_key: "secret".to_owned(),
        region: "us-east-1".to_owned(),
    })
}

#[tokio::test]
async fn jobs_that_are_stuck_do_not_hide_those_behind_them() {
    let (records, _directory) = crate::records::tests::sqlite().await;
    let broker = Memory::new(Limits::default());
    let mut ids = Vec::new();
    for n in 0..=PAGE {
        let job = admit(&records, &format!("cancelled-{n:03}")).await;
        records.jobs().request_cancel(job.id).await.expect("it is noted");
        ids.push(job.id);
    }
    // All were made at the same time; only the one that is listed last can be settled.
    let last = *ids.iter().max().expect("there are some");
    let workspace = "default".to_owned();
    let fact = Staged { input_workdir: None, ethos: None, outcome: None };
    let staged = Envelope { job: last, workspace, at: second(1), traceparent: None, fact };
    let publication = broker::Publication {
        subject: staged.subject(),
        payload: staged.encode().expect("it is JSON").into(),
        message_id: None,
        expect: broker::Expect::Empty,
        traceparent: None,
    };
    broker.publish(publication).await.expect("it is stored");

    let sweeper = Sweeper {
        records: records.clone(),
        broker: Arc::new(broker.clone()),
        store: no_store(),
        retention: Retention::default(),
        lost_after: Duration::from_secs(900),
    };
    let lost = LostClaims::new(Arc::clone(&sweeper.broker), sweeper.lost_after);
    let swept = sweeper.sweep(Duty::Cancel, Timestamp::MAX, &lost).await;
    assert_eq!(swept.expect("records and queue answer").len(), ids.len());
    let invoked = subject::fact(Phase::Invoked, "default", last);
    let stored = broker.last(StreamName::of(Phase::Invoked), &invoked).await;
    let stored = stored.expect("the queue answers").expect("the job is settled");
    let invoked = Envelope::<Invoked>::decode(&stored.subject, &stored.payload, stored.at);
    let outcome = invoked.expect("it is a fact").fact.outcome;
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    records.close().await;
}
