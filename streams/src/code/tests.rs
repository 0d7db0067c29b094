use super::*;

/// The list of interface.md. A code that is added there or here must be added in both.
const DOCUMENTED: &str = "timeout agent_failed agent_crashed no_result adapter_missing \
    adapter_protocol model_auth model_rate_limited oom_killed image_pull_failed gpu_unavailable \
    action_missing action_failed stage_failed save_failed worker_lost cancelled rejected disk_full \
    idle_timeout queue_timeout secret_missing container_vanished unschedulable evicted \
    budget_exceeded";

#[test]
fn the_documented_codes_are_all_there_are() {
    let spellings: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(spellings, DOCUMENTED.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn every_code_is_spelled_the_same_everywhere() {
    for code in Code::ALL.iter().copied() {
        assert_eq!(code.as_str().parse::<Code>().ok(), Some(code));
        assert_eq!(code.to_string(), code.as_str());
        let json = serde_json::to_value(code).expect("a code is JSON");
        assert_eq!(json, code.as_str());
        assert_eq!(serde_json::from_value::<Code>(json).ok(), Some(code));
    }
}

#[test]
fn every_code_says_what_it_means_and_what_to_do() {
    for code in Code::ALL {
        for sentence in [code.meaning(), code.remedy()] {
            let first = sentence.chars().next();
            assert!(first.is_some_and(char::is_uppercase) && sentence.ends_with('.'), "{code}");
        }
    }
}

#[test]
fn time_limits_and_cancels_have_exit_codes_of_their_own() {
    let blamed = |blame| {
        let codes = Code::ALL.iter().filter(move |code| code.blame() == blame);
        codes.map(|code| code.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(blamed(Blame::Time), ["timeout", "idle_timeout", "queue_timeout"]);
    assert_eq!(blamed(Blame::User), ["cancelled"]);
}

#[test]
fn an_unknown_word_is_named() {
    for word in ["", "Timeout", "time_out"] {
        let error = word.parse::<Code>().expect_err(word);
        assert_eq!(error.to_string(), format!("unknown failure code '{word}'"));
    }
}
