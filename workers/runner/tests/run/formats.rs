//! The files of the contract, written and read back.

use std::fs;

use errand_runner::{End, Failure, Life, Outcome, SecretsFound, Usage};
use proptest::prelude::*;
use serde_json::Value;

use crate::scene::Scene;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn launch_and_outcome_survive_the_disk(
        agent in any_json(),
        input in ".{0,40}",
        timeout_seconds in 0.001_f64..1e9,
        lease_seconds in proptest::option::of(0.0_f64..1e6),
        env in proptest::collection::btree_map("[A-Z_]{1,8}", ".{0,20}", 0..4),
        micros in 0_i64..4_000_000_000_000_000,
        failure in proptest::option::of(proptest::sample::select(Failure::ALL.to_vec())),
    ) {
        let mut scene = Scene::new("");
        scene.launch.agent = agent.clone();
        scene.launch.input = input.clone();
        scene.launch.timeout_seconds = timeout_seconds;
        scene.launch.lease_seconds = lease_seconds;
        scene.launch.env = env;
        scene.run.write_launch(&scene.launch).expect("room on the disk");
        prop_assert_eq!(scene.run.launch().expect("just written"), scene.launch.clone());

        let at = jiff::Timestamp::from_microsecond(micros).expect("a time");
        let outcome = Outcome {
            version: 1,
            end: End::Failed,
            failure,
            message: input,
            interrupted: true,
            started_at: at,
            invoked_at: lease_seconds.map(|_| at),
            ended_at: at,
            run_result: Some(agent).filter(|value| !value.is_null()),
            error: None,
            usage: Some(Usage { input_tokens: 1, output_tokens: u64::MAX }),
            log_lines: 7,
            killed: 0,
            left: 0,
            secrets_found: SecretsFound::default(),
        };
        scene.run.write_outcome(&outcome).expect("room on the disk");
        fs::write(scene.run.started(), "{}").expect("room on the disk");
        prop_assert_eq!(scene.run.life().expect("a run"), Life::Ended(Box::new(outcome)));
    }
}
