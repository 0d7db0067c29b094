use streams::memory::Memory;
use streams::topology::Limits;

use super::*;

#[tokio::test]
async fn a_hold_in_time_is_not_taken_away_by_one_that_is_too_late() {
    let broker: Arc<dyn Broker> = Arc::new(Memory::new(Limits::default()));
    let (holds, job) = (Holds::new(Arc::clone(&broker)), JobId::new());
    assert!(holds.hold(job, "first").await.expect("the broker answers"));
    let claim = broker.create(Bucket::Claims, &job.to_string(), "claim".into()).await;
    assert!(claim.expect("the broker answers").is_some());
    assert!(holds.hold(job, "second").await.expect("the broker answers"));
    assert!(holds.is_held(job).await.expect("the broker answers"), "the worker waits for it");

    holds.release(job).await.expect("the broker answers");
    assert!(!holds.hold(job, "late").await.expect("the broker answers"));
    assert!(!holds.is_held(job).await.expect("the broker answers"), "nothing stays behind");
}
