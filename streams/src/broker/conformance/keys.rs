//! The key-value buckets: first wins, and nobody overwrites what he has not seen.

use bytes::Bytes;
use futures_util::future;

use crate::broker::{Broker, Entry};
use crate::id::JobId;
use crate::topology::Bucket;

const ANSWERS: &str = "the bucket answers";

pub(super) async fn a_key_is_created_once(broker: &dyn Broker) {
    let key = JobId::new().to_string();
    assert_eq!(broker.get(Bucket::Claims, &key).await.expect(ANSWERS), None);

    let created = broker.create(Bucket::Claims, &key, "one".into()).await.expect(ANSWERS);
    let revision = created.expect("it did not exist");
    let again = broker.create(Bucket::Claims, &key, "two".into()).await.expect(ANSWERS);
    assert_eq!(again, None);

    let found = broker.get(Bucket::Claims, &key).await.expect(ANSWERS);
    assert_eq!(found, Some(Entry { value: "one".into(), revision }));
    // The other bucket has the same keys and is another one.
    assert_eq!(broker.get(Bucket::Ends, &key).await.expect(ANSWERS), None);
}

pub(super) async fn one_of_many_creators_wins(broker: &dyn Broker) {
    let key = JobId::new().to_string();
    // In the second round the key was there and is gone.
    for _ in 0..2 {
        let creators = (0..8)
            .map(|creator| broker.create(Bucket::Ends, &key, Bytes::from(format!("{creator}"))));
        let created = future::try_join_all(creators).await.expect(ANSWERS);
        let winners: Vec<_> = (0..8).filter(|creator| created[*creator].is_some()).collect();
        assert_eq!(winners.len(), 1, "{created:?}");

        let found = broker.get(Bucket::Ends, &key).await.expect(ANSWERS).expect("it exists");
        assert_eq!(found.value, winners[0].to_string());
        broker.remove(Bucket::Ends, &key).await.expect(ANSWERS);
    }
}

pub(super) async fn an_update_needs_the_revision(broker: &dyn Broker) {
    let key = JobId::new().to_string();
    let update = |value: &'static str, revision| {
        broker.update(Bucket::Claims, &key, Bytes::from_static(value.as_bytes()), revision)
    };
    let created = broker.create(Bucket::Claims, &key, "one".into()).await.expect(ANSWERS);
    let first = created.expect("it did not exist");
    let second = update("two", first).await.expect(ANSWERS).expect("the revision is right");
    assert!(second > first);

    for wrong in [first, second + 1] {
        assert_eq!(update("three", wrong).await.expect(ANSWERS), None);
    }
    let found = broker.get(Bucket::Claims, &key).await.expect(ANSWERS);
    assert_eq!(found, Some(Entry { value: "two".into(), revision: second }));
}

pub(super) async fn a_removed_key_can_be_created_again(broker: &dyn Broker) {
    let key = JobId::new().to_string();
    let created = broker.create(Bucket::Claims, &key, "one".into()).await.expect(ANSWERS);
    let first = created.expect("it did not exist");
    for _ in 0..2 {
        broker.remove(Bucket::Claims, &key).await.expect("removing can be repeated");
    }
    assert_eq!(broker.get(Bucket::Claims, &key).await.expect(ANSWERS), None);
    let late = broker.update(Bucket::Claims, &key, "late".into(), first).await;
    assert_eq!(late.expect(ANSWERS), None, "a key that is gone has no revision");

    let again = broker.create(Bucket::Claims, &key, "two".into()).await.expect(ANSWERS);
    assert!(again.expect("it did not exist") > first);
}
