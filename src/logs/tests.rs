use jiff::Timestamp;
use streams::broker::{Expect, Publication, Published};
use streams::id::Attempt;
use streams::log::LogStream;
use streams::memory::Memory;
use streams::topology::Limits;
use workers::store::StoreConfig;

use super::*;

#[test]
fn windows() {
    let check = |window: Window, total, expected| assert_eq!(window.places(total, 4), expected);
    check(Window::From { first: 0, limit: 4 }, 10, (0, 4));
    check(Window::From { first: 8, limit: 4 }, 10, (8, 10));
    check(Window::From { first: 20, limit: u64::MAX }, 10, (10, 10));
    check(Window::Before { end: 7, limit: 100 }, 10, (0, 7));
    check(Window::Before { end: 99, limit: 2 }, 10, (8, 10));
    check(Window::Tail(3), 10, (7, 10));
    check(Window::Tail(30), 10, (0, 10));
    check(Window::Tail(3), 0, (0, 0));
    check(Window::Above { number: 9, limit: 2 }, 10, (4, 6));
}

#[test]
fn places_that_cover_a_window() {
    let mut index = Index::default();
    for (sequence, lines, last) in [(5, 3, 3), (9, 0, 5), (12, 4, 9)] {
        index.add(Place::Batch(sequence), lines, last);
    }
    let above = |number| index.above(number);
    assert_eq!(above(0), Some((Place::Batch(5), 0)));
    assert_eq!(above(3), Some((Place::Batch(9), 3)));
    assert_eq!(above(8), Some((Place::Batch(12), 3)));
    assert_eq!(above(9), None);
    assert_eq!((index.total(), index.last_batch()), (7, Some(12)));
    let check = |first, end, expected: &[(u64, u64)]| {
        let found = index.covering(first, end).filter_map(|(place, start)| match place {
            Place::Batch(sequence) => Some((sequence, start)),
            Place::Archive(_) => None,
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{first}..{end}");
    };
    check(0, 3, &[(5, 0)]);
    check(0, 4, &[(5, 0), (9, 3), (12, 3)]);
    check(3, 7, &[(12, 3)]);
    check(7, 9, &[]);
    check(0, 0, &[]);
}

#[tokio::test]
async fn what_another_job_has_at_a_sequence_is_not_shown() {
    let broker = Arc::new(Memory::new(Limits::default()));
    let [mine, theirs] = [JobId::new(), JobId::new()];
    let line = LogLine {
        n: 1,
        at: Timestamp::UNIX_EPOCH,
        stream: LogStream::Stdout,
        text: "secret".to_owned(),
    };
    let batch = LogBatch {
        v: 1,
        job: theirs,
        workspace: "default".to_owned(),
        attempt: Attempt::FIRST,
        first: 1,
        count: 1,
        blank: Some(0),
        prev: 0,
        offset: 0,
        total_bytes: 0,
        lines: Lines::Inline(vec![line]),
    };
    let published = broker.publish(Publication {
        subject: subject::logs("default", theirs),
        payload: serde_json::to_vec(&batch).expect("it is JSON").into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    });
    let Ok(Published::Stored(sequence)) = published.await else { panic!("it is stored") };
    let store = Store::new(&StoreConfig {
        endpoint: "http://127.0.0.1:1".to_owned(),
        bucket: "none".to_owned(),
        access_key: String::new(),
        secret_key: String::new(),
        region: "none".to_owned(),
    });
    let logs = Logs::new(broker, store);
    let mut index = Index::default();
    index.add(Place::Batch(sequence), 1, 1);
    for (job, expected) in [(theirs, Some(1)), (mine, None)] {
        let reading = Reading { logs: &logs, workspace: "default", job };
        for window in [Window::Tail(5), Window::Above { number: 0, limit: 5 }] {
            let found = reading.window(&index, window).await.expect("the queue answers");
            assert_eq!(found.map(|found| found.lines.len()), expected, "{window:?}");
        }
    }
}
