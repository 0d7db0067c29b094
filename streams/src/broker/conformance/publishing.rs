//! What is stored, what is refused, and how it is read back.

use futures_util::{FutureExt, StreamExt, future};
use tokio::time::timeout;

use super::{PATIENCE, SMALL_INTAKE_BYTES, fact, plain, store};
use crate::broker::{Broker, Error, Expect, Publication, Published};
use crate::id::JobId;
use crate::phase::Phase;
use crate::subject;
use crate::topology::StreamName;

pub(super) async fn a_first_fact_is_stored(broker: &dyn Broker) {
    let job = JobId::new();
    for phase in Phase::CHAIN {
        let fact = fact(phase, "first", job);
        let sequence = store(broker, fact.clone()).await;
        let last = broker.last(StreamName::of(phase), &fact.subject).await;
        let last = last.expect("the stream answers").expect("the fact is there");
        assert_eq!((last.sequence, last.payload), (sequence, fact.payload));
        assert_eq!(last.subject, fact.subject);
    }
}

pub(super) async fn a_second_fact_on_a_subject_is_refused(broker: &dyn Broker) {
    for phase in [Phase::Submitted, Phase::Resolved] {
        let first = fact(phase, "second", JobId::new());
        store(broker, first.clone()).await;

        let other_id = Some("another".to_owned());
        let second = plain(&first.subject, "second");
        for publication in [
            Publication { message_id: other_id.clone(), ..second.clone() },
            Publication { message_id: other_id, expect: Expect::Empty, ..second.clone() },
            second,
        ] {
            let published = broker.publish(publication).await.expect("the stream answers");
            assert_eq!(published, Published::Exists);
        }
        let last = broker.last(StreamName::of(phase), &first.subject).await;
        let last = last.expect("the stream answers").expect("the first is there");
        assert_eq!(last.payload, first.payload);
    }
}

pub(super) async fn a_message_id_is_stored_once(broker: &dyn Broker) {
    let subject = subject::status("id", JobId::new());
    let named = Publication { message_id: Some(subject.clone()), ..plain(&subject, "one") };
    let sequence = store(broker, named.clone()).await;
    assert_eq!(broker.publish(named).await.expect("the stream answers"), Published::Exists);

    let last = broker.last(StreamName::Status, &subject).await.expect("the stream answers");
    assert_eq!(last.map(|last| last.sequence), Some(sequence));
}

pub(super) async fn the_last_sequence_is_compared(broker: &dyn Broker) {
    let subject = subject::logs("compare", JobId::new());
    let behind = |expect| Publication { expect, ..plain(&subject, "lines") };
    let first = store(broker, behind(Expect::Empty)).await;
    store(broker, plain(&subject::logs("compare", JobId::new()), "another job's")).await;
    let second = store(broker, behind(Expect::Last(first))).await;

    for wrong in [Expect::Empty, Expect::Last(first), Expect::Last(second + 1)] {
        let published = broker.publish(behind(wrong)).await.expect("the stream answers");
        assert_eq!(published, Published::Exists, "{wrong:?}");
    }
    store(broker, behind(Expect::Last(second))).await;
}

pub(super) async fn one_of_many_publishers_wins(broker: &dyn Broker) {
    let subject = subject::logs("race", JobId::new());
    let first = store(broker, plain(&subject, "first")).await;
    let publishers = (0..8).map(|publisher| {
        let expect = Expect::Last(first);
        broker.publish(Publication { expect, ..plain(&subject, &format!("{publisher}")) })
    });
    let published = future::try_join_all(publishers).await.expect("the stream answers");
    let won = published.iter().filter(|published| **published != Published::Exists);
    assert_eq!(won.count(), 1, "{published:?}");
}

pub(super) async fn a_subject_is_read_message_by_message(broker: &dyn Broker) {
    let (job, other) = (JobId::new(), JobId::new());
    let subject = subject::logs("walk", job);
    let mut sequences = Vec::new();
    for text in ["one", "two", "three"] {
        sequences.push(store(broker, plain(&subject, text)).await);
        store(broker, plain(&subject::logs("walk", other), "another job's")).await;
    }

    let mut walked = Vec::new();
    let mut from = 0;
    while let Some(stored) =
        broker.next(StreamName::Logs, &subject, from).await.expect("the stream answers")
    {
        from = stored.sequence + 1;
        walked.push(stored);
    }
    assert_eq!(walked.iter().map(|stored| stored.sequence).collect::<Vec<_>>(), sequences);
    assert_eq!(
        walked.iter().map(|stored| &stored.payload[..]).collect::<Vec<_>>(),
        [&b"one"[..], b"two", b"three"]
    );

    for stored in &walked {
        let found = broker.at(StreamName::Logs, stored.sequence).await;
        assert_eq!(found.expect("the stream answers").as_ref(), Some(stored));
    }
    let nowhere = broker.at(StreamName::Logs, u64::from(u32::MAX)).await;
    assert_eq!(nowhere.expect("the stream answers"), None);

    let last = broker.last(StreamName::Logs, &subject).await.expect("the stream answers");
    assert_eq!(last.as_ref(), walked.last());
    let nothing = broker.last(StreamName::Logs, &subject::logs("walk", JobId::new())).await;
    assert_eq!(nothing.expect("the stream answers"), None);

    let any_job = broker.next(StreamName::Logs, "logs.walk.*", sequences[0] + 1).await;
    let any_job = any_job.expect("the stream answers").expect("the other job's is next");
    assert_eq!(any_job.subject, subject::logs("walk", other));
}

pub(super) async fn status_keeps_the_last_sixteen(broker: &dyn Broker) {
    let subject = subject::status("sixteen", JobId::new());
    let mut sequences = Vec::new();
    for change in 1..=20 {
        sequences.push(store(broker, plain(&subject, &format!("change {change}"))).await);
    }
    let mut kept = Vec::new();
    let mut from = 0;
    while let Some(stored) =
        broker.next(StreamName::Status, &subject, from).await.expect("the stream answers")
    {
        from = stored.sequence + 1;
        kept.push(stored.sequence);
    }
    assert_eq!(kept, sequences[4..]);
}

pub(super) async fn a_discarded_message_is_gone_and_makes_room(broker: &dyn Broker) {
    let first = fact(Phase::Submitted, "discard", JobId::new());
    let sequence = store(broker, first.clone()).await;
    broker.discard(StreamName::Intake, sequence).await.expect("it is removed");
    let gone = broker.at(StreamName::Intake, sequence).await.expect("the stream answers");
    assert_eq!(gone, None);
    let second = Publication { message_id: None, ..first.clone() };
    let later = store(broker, second).await;
    broker.discard(StreamName::Intake, sequence).await.expect("that can be repeated");
    let last = broker.last(StreamName::Intake, &first.subject).await.expect("the stream answers");
    assert_eq!(last.map(|last| last.sequence), Some(later));
}

pub(super) async fn a_purged_subject_is_empty(broker: &dyn Broker) {
    let (gone, stays) =
        (fact(Phase::Staged, "purge", JobId::new()), fact(Phase::Staged, "purge", JobId::new()));
    store(broker, gone.clone()).await;
    store(broker, stays.clone()).await;
    for _ in 0..2 {
        broker.purge(StreamName::Jobs, &gone.subject).await.expect("purging can be repeated");
    }

    let last = broker.last(StreamName::Jobs, &gone.subject).await;
    assert_eq!(last.expect("the stream answers"), None);
    let last = broker.last(StreamName::Jobs, &stays.subject).await;
    assert!(last.expect("the stream answers").is_some());

    // The server remembers ids of messages that are gone, so a late publisher revives no job.
    let late = broker.publish(gone.clone()).await.expect("the stream answers");
    assert_eq!(late, Published::Exists);
    store(broker, Publication { message_id: None, ..gone }).await;
}

pub(super) async fn a_subject_that_nobody_keeps_is_missing(broker: &dyn Broker) {
    let published = broker.publish(plain("jobs.invented.default.1", "lost")).await;
    assert!(matches!(published, Err(Error::Missing(_))), "{published:?}");
}

pub(super) async fn a_full_intake_refuses_and_jobs_go_on(broker: &dyn Broker) {
    let submission = || Publication {
        payload: vec![b' '; 512].into(),
        ..fact(Phase::Submitted, "full", JobId::new())
    };
    let accepted = submission();
    let room = async || broker.room(StreamName::Intake).await.expect("the stream answers");
    let before = room().await.expect("it has a limit");
    assert_eq!(before.of, SMALL_INTAKE_BYTES);
    store(broker, accepted.clone()).await;
    let after = room().await.expect("it has a limit");
    assert!(after.free <= before.free - 512, "{before:?} {after:?}");
    let jobs = broker.room(StreamName::Jobs).await.expect("the stream answers");
    assert_eq!(jobs, None, "the other facts have none");
    // Eight payloads fill it; the server counts its own overhead too.
    let mut full = None;
    for _ in 0..8 {
        if let Err(error) = broker.publish(submission()).await {
            full = Some(error);
            break;
        }
    }
    assert!(matches!(full, Some(Error::Full(_))), "{full:?}");

    let again = broker.publish(accepted).await.expect("the stream answers");
    assert_eq!(again, Published::Exists, "an accepted submission may be repeated");
    store(broker, fact(Phase::Resolved, "full", JobId::new())).await;
}

pub(super) async fn hints_come_for_their_subject(broker: &dyn Broker) {
    let (ours, others) =
        (subject::status("hint", JobId::new()), subject::status("x", JobId::new()));
    let mut exact = broker.hints(&ours).await.expect("hints can be had");
    let mut any = broker.hints("status.>").await.expect("hints can be had");
    store(broker, plain(&others, "not for us")).await;
    store(broker, plain(&ours, "for us")).await;

    for _ in 0..2 {
        timeout(PATIENCE, any.next()).await.expect("a hint for each message").expect("goes on");
    }
    timeout(PATIENCE, exact.next()).await.expect("a hint for ours").expect("goes on");
    // The other message came before ours: a hint for it would be there by now.
    assert!(exact.next().now_or_never().is_none());
}

pub(super) async fn what_is_sent_is_heard(broker: &dyn Broker) {
    let subject = format!("suite.sent.{}", JobId::new());
    let mut hints = broker.hints(&subject).await.expect("hints can be had");
    broker.send(&subject, "id", "to whoever listens".into()).await.expect("the server has it");
    timeout(PATIENCE, hints.next()).await.expect("it is heard").expect("goes on");
}
