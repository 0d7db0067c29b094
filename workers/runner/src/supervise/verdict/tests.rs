use errand_runner::LogStream;
use proptest::prelude::*;

use super::*;
use crate::mask::Mask;

fn ended() -> Ended {
    Ended {
        end: End::Host,
        host_status: None,
        killed: 0,
        invoked_at: None,
        limit_seconds: 60.0,
        lease_seconds: None,
        host_words: String::new(),
    }
}

/// What every run goes through once its agent is gone; returns the outcome.
fn judge(result: Value, limits: &Limits) -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mask = Mask::new(["s3cr3t-value"]);
    let mut log = Log::create(&dir.path().join("agent.log"), mask, 1 << 20).expect("a new log");
    log.agent(LogStream::Stderr, b"last words", 10);
    let mut verdict = Verdict::of(&ended(), Some(Report::Returned(result)));
    verdict.weigh_limits(limits);
    let _ = (verdict.is_success(), verdict.stderr_files());
    verdict.add_artifacts(vec![json!({"name": "agent_stdout"})]);
    log.platform(&verdict.sentence_about("default/a"));
    if let Some(reason) = verdict.reason_of("default/a") {
        log.platform(&reason);
    }
    verdict.finish(&log);
    verdict.into_outcome(limit::now())
}

/// The names of the artifacts that are listed.
fn listed(outcome: &Outcome) -> Value {
    outcome.run_result.as_ref().expect("it returned")["artifacts"]["artifacts"].clone()
}

#[test]
fn artifacts_that_are_none_are_replaced_by_what_was_kept() {
    let odd = [json!("x"), json!(null), json!(7), json!([]), json!({"artifacts": "x"})];
    for artifacts in odd {
        let result = json!({"status": "succeeded", "artifacts": artifacts});
        let outcome = judge(result, &Limits::default());
        assert_eq!(outcome.end, OutcomeEnd::Succeeded);
        assert_eq!(listed(&outcome), json!([{"name": "agent_stdout"}]), "{artifacts}");
    }
    let real = json!({"root": "/r", "artifacts": [{"name": "own"}]});
    let outcome = judge(json!({"status": "failed", "artifacts": real}), &Limits::default());
    assert_eq!(listed(&outcome), json!([{"name": "own"}, {"name": "agent_stdout"}]));
}

#[test]
fn a_result_that_grows_in_being_written_is_not_kept() {
    let output = json!({"response": vec![1e9; 700_000]});
    let outcome = judge(json!({"status": "succeeded", "output": output}), &Limits::default());
    assert_eq!(outcome.end, OutcomeEnd::Raised);
    assert_eq!(outcome.failure, Some(Failure::AdapterProtocol));
    assert_eq!((outcome.run_result, outcome.message.len() < 200), (None, true));
}

#[test]
fn a_supervisor_that_breaks_off_names_no_success() {
    let outcome = Verdict::broken_off(&ended()).into_outcome(limit::now());
    let seen = (outcome.end, outcome.failure, outcome.error.is_some());
    assert_eq!(seen, (OutcomeEnd::Raised, Some(Failure::AdapterProtocol), true));
}

/// Any JSON, under the names that are looked at more often than under others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![".{0,8}", Just("succeeded".to_owned()), Just("stderr".to_owned())]
            .prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("artifacts"),
        Just("error"),
        Just("output"),
        Just("response"),
        Just("usage"),
        Just("input_tokens"),
        Just("output_tokens"),
        Just("status"),
        Just("metadata"),
        Just("message"),
        Just("code"),
        Just("name"),
        Just("path"),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(name, it)| (name.to_owned(), it)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_is_reported_has_an_outcome(result in any_json(), starved: bool) {
        let want_of_memory = starved.then(|| "killed for want of memory".to_owned());
        let outcome = judge(result, &Limits { want_of_memory, struck: Vec::new() });
        prop_assert_eq!(outcome.failure.is_none(), outcome.end == OutcomeEnd::Succeeded);
        prop_assert!(outcome.run_result.is_some() != outcome.error.is_some());
        if outcome.run_result.is_some() {
            let listed = listed(&outcome);
            let last = listed.as_array().and_then(|all| all.last());
            prop_assert_eq!(last, Some(&json!({"name": "agent_stdout"})));
        }
    }
}
