//! Inputs, contexts and variables at their limits and beyond.

use serde_json::{Value, json};
use streams::fact::Submitted;
use streams::id::JobId;
use workers::ports::{Admission, Catalog as _};

use crate::catalog::Settings;
use crate::http::tests::harness::Harness;
use crate::http::tests::{AGENTS, JOBS, SECRETS, agent};

fn spec(input: &str, context: &Value) -> Value {
    let agent = json!({
        "config_format": "nemo-agents-spec-v1", "config": agent("calc")["config"].take(),
    });
    json!({"agent": agent, "input": input, "context": context})
}

/// The limit is the installation's, 8 MiB unless configured; of both databases alike. A submit fact
/// meets the same words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_h3_an_input_over_the_limit_is_refused_with_field_size_and_limit() {
    assert_eq!(Settings::default().max_input_bytes, 8 * 1024 * 1024);
    let settings = Settings { max_input_bytes: 1000, ..Settings::default() };
    for api in Harness::both_with(settings).await {
        let execute = format!("{AGENTS}/jobs/execute");
        let submit = async |input: &str, context: &Value| {
            api.post(&execute, json!({"spec": spec(input, context)})).await
        };
        let blob = |bytes: usize| json!({"blob": "b".repeat(bytes - r#"{"blob":""}"#.len())});
        // Both at once, at the limit: what is kept is what was sent.
        let (input, context) = ("ä".repeat(500), blob(1000));
        let made = submit(&input, &context).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let name = made.body["name"].as_str().expect("a name");
        let kept = api.get(&format!("{JOBS}/{name}")).await.body;
        assert_eq!(
            (&kept["spec"]["request"]["input"], &kept["spec"]["context"]),
            (&json!(input), &context)
        );

        let over = |field: &str| {
            format!(
                "{field} has 1001 bytes; at most 1000 are taken (agents.jobs.max_input_bytes); \
                 put the rest into a fileset"
            )
        };
        let long = "a".repeat(1001);
        submit(&long, &json!({})).await.answers(413, json!({"detail": over("input")}));
        submit("", &blob(1001)).await.answers(413, json!({"detail": over("context")}));
        let fact = json!({"v": 1, "spec": spec(&long, &json!({}))});
        let fact: Submitted = serde_json::from_value(fact).expect("a submit fact");
        let admission = api.catalog.admit(JobId::new(), "default", &fact).await;
        match admission.expect("the records answer") {
            Admission::Refused(reason) => assert_eq!(reason, over("input")),
            other => panic!("it should be refused: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_h3_a_variable_that_no_process_could_have_is_refused_with_the_limit() {
    let api = Harness::start().await;
    let value = "x".repeat(150_000);
    let execute = format!("{AGENTS}/jobs/execute");
    let text = "The value of env var 'BIG' has 150000 bytes; at most 130816 fit.";
    let mut inline = spec("", &json!({}));
    inline["agent"]["config"]["environment"] = json!({"env": {"BIG": value}});
    let mut environment = spec("", &json!({}));
    environment["environment"] = json!({"environment_spec": {"env": {"BIG": value}}});
    for spec in [inline, environment] {
        let refused = api.post(&execute, json!({"spec": spec})).await;
        assert_eq!(refused.status, 422);
        assert!(refused.body.to_string().contains(text), "{}", refused.body);
    }
    let refused = api.post(SECRETS, json!({"name": "big", "value": value})).await;
    assert_eq!(refused.status, 422);
    let text = "Secret value has 150000 bytes; an environment variable holds at most 130816";
    assert!(refused.body.to_string().contains(text), "{}", refused.body);
}
