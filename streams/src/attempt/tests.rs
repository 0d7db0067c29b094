use super::*;

fn end(attempt: u32, message: &str) -> AttemptEnd {
    let (code, message) = (Code::WorkerLost, message.to_owned());
    AttemptEnd {
        attempt: Attempt(attempt),
        place: "here".to_owned(),
        started_at: Timestamp::UNIX_EPOCH,
        ended_at: Timestamp::UNIX_EPOCH,
        outcome: Outcome::Failed { code, message },
    }
}

#[test]
fn only_an_agent_that_the_platform_lost_is_attempted_again() {
    let again: Vec<_> = Code::ALL.iter().copied().filter(|code| loses_the_agent(*code)).collect();
    assert_eq!(again, [Code::WorkerLost, Code::ContainerVanished, Code::Evicted]);
    assert!(!Outcome::Succeeded.permits_another_attempt());
}

#[test]
fn what_is_remembered_fits_into_a_fact() {
    let mut past = Vec::new();
    for attempt in 1..=100 {
        end(attempt, &"é".repeat(10_000)).add_to(&mut past);
    }
    let attempts: Vec<_> = past.iter().map(|end| end.attempt.0).collect();
    assert_eq!(attempts, Vec::from_iter(81..=100));
    let bytes = serde_json::to_vec(&past).expect("it is JSON").len();
    assert!(bytes < crate::envelope::MAX_PAYLOAD_BYTES / 2, "{bytes}");
}
