use proptest::prelude::*;

use super::*;

/// Words that are nearly ids, so that the property does not only see noise.
fn near_id() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "platform-job-[1-9A-HJ-NP-Za-km-z]{20,24}",
        "platform-job-1{0,18}[a-zA-Z0-9]{0,4}",
        "[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "\\{?[0-9a-f]{32}\\}?",
    ]
}

proptest! {
    #[test]
    fn both_spellings_come_back(number in any::<u128>()) {
        let id = JobId::from_uuid(Uuid::from_u128(number));
        prop_assert_eq!(id.to_string().parse::<JobId>().ok(), Some(id));
        prop_assert_eq!(id.http().parse::<JobId>().ok(), Some(id));
        prop_assert_eq!(id.http(), format!("platform-job-{}", id.base58()));
    }

    #[test]
    fn a_long_word_is_given_up_early(length in 30..200_000usize) {
        let word = format!("platform-job-{}", "z".repeat(length));
        prop_assert!(word.parse::<JobId>().is_err());
    }

    #[test]
    fn only_the_two_spellings_are_accepted(word in near_id()) {
        if let Ok(id) = word.parse::<JobId>() {
            prop_assert!(word == id.to_string() || word == id.http(), "{word}");
        }
    }
}

#[test]
fn garbage_is_refused_and_named() {
    for garbage in [
        "",
        "platform-job-",
        "platform-job-0OIl",
        "platform-job-11111111111111111",
        "0190163d8694739baea5966c26f8ad91",
        "{0190163d-8694-739b-aea5-966c26f8ad91}",
        "urn:uuid:0190163d-8694-739b-aea5-966c26f8ad91",
        "0190163D-8694-739B-AEA5-966C26F8AD91",
        " 0190163d-8694-739b-aea5-966c26f8ad91",
    ] {
        let error = garbage.parse::<JobId>().expect_err(garbage);
        assert_eq!(
            error.to_string(),
            format!("'{garbage}' is no job id: expected a UUID or platform-job-<base58>")
        );
    }
}

#[test]
fn new_ids_are_ordered_by_time() {
    let ids: Vec<_> = (0..100).map(|_| JobId::new()).collect();
    assert!(ids.is_sorted());
    assert!(ids.iter().all(|id| id.uuid().get_version_num() == 7));
}

#[test]
fn a_message_id_names_job_and_phase() {
    let id: JobId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().expect("a UUID");
    let names = Phase::CHAIN.map(|phase| id.message_id(phase));
    assert_eq!(names[2], "0190163d-8694-739b-aea5-966c26f8ad91:staged");
    assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), 6);
}
