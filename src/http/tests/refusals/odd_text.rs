//! NUL characters and halves of letters, which not every store can keep: kept exactly, or refused
//! with words, never a failure of ours.

use serde_json::{Value, json};

use crate::http::tests::harness::Harness;
use crate::http::tests::{AGENTS, FILESETS, JOBS, SECRETS, agent};

const WORKSPACES: &str = "/apis/entities/v2/workspaces";
const NUL: &str = "a\u{0}b";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_is_kept_in_input_and_context_and_refused_elsewhere() {
    for api in Harness::start_both().await {
        let execute = format!("{AGENTS}/jobs/execute");
        let mut spec = json!({"agent": agent("calc"), "input": NUL, "context": {NUL: [NUL]}});
        spec["agent"] = json!({
            "config_format": "nemo-agents-spec-v1", "config": agent("calc")["config"].take(),
        });
        let made = api.post(&execute, json!({"spec": spec, "custom_fields": {NUL: NUL}})).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let name = made.body["name"].as_str().expect("a name");
        for path in [format!("{execute}/{name}"), format!("{JOBS}/{name}")] {
            let kept = api.get(&path).await.body;
            assert_eq!(kept["spec"]["request"]["input"], NUL, "{path}");
            assert_eq!(kept["spec"]["context"], json!({NUL: [NUL]}), "{path}");
            assert_eq!(kept["custom_fields"][NUL], NUL, "{path}");
        }
        // Lists and filters read the same documents.
        for path in [format!("{execute}?filter[spec.input]=a"), format!("{JOBS}?page_size=5")] {
            api.get(&path).await.status_is(200);
        }

        let refuses = async |path: &str, body: Value| {
            let refused = api.post(path, body.clone()).await;
            assert_eq!(refused.status, 422, "{path} {body}: {}", refused.body);
            assert!(refused.body.to_string().contains("NUL"), "{path} {body}: {}", refused.body);
        };
        refuses(WORKSPACES, json!({"name": "odd-w", "description": NUL})).await;
        refuses(FILESETS, json!({"name": "odd-f", "description": NUL})).await;
        refuses(SECRETS, json!({"name": "odd-s", "value": "v", "description": NUL})).await;
        refuses(SECRETS, json!({"name": "odd-s", "value": NUL})).await;
        refuses(&execute, json!({"spec": spec, "description": NUL})).await;
        let mut variable = spec.clone();
        variable["agent"]["config"]["environment"] = json!({"env": {"A": NUL}});
        refuses(&execute, json!({"spec": variable})).await;
        let mut described = agent("odd");
        described["description"] = json!(NUL);
        refuses(&format!("{AGENTS}/agents"), described).await;
    }
}

/// JSON can spell one half of a letter that has two; no text can hold it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_letter_is_refused_wherever_it_stands() {
    let api = Harness::start().await;
    let bodies = [
        (format!("{AGENTS}/jobs/execute"), r#"{"spec": {"agent": "a", "input": "x\ud800"}}"#),
        (format!("{AGENTS}/jobs/execute"), r#"{"spec": {"agent": "a", "context": {"\udc00": 1}}}"#),
        (WORKSPACES.to_owned(), r#"{"name": "odd-w", "description": "\ud83d"}"#),
        (SECRETS.to_owned(), r#"{"name": "odd-s", "value": "s3cr3t\ud800"}"#),
    ];
    for (path, body) in bodies {
        let refused = api.raw("POST", &path, "application/json", body).await;
        let kind = &refused.body["detail"][0]["type"];
        assert_eq!((refused.status, kind), (422, &json!("json_invalid")), "{}", refused.body);
        assert!(!refused.body.to_string().contains("s3cr3t"), "{}", refused.body);
    }
}
