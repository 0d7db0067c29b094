//! H2–H4 and the field cases of JSON Schema: what an agent may demand of a job's context, and
//! what becomes of a context that is otherwise. Dates are tested with `catalog::context_schema`.

use std::time::{Duration, Instant};

use super::*;

fn since() -> Value {
    json!({
        "type": "object",
        "properties": {"since": {"type": "string", "format": "date-time"}},
        "required": ["since"],
        "additionalProperties": false,
    })
}

async fn register_with(api: &Harness, name: &str, schema: Value) -> Answer {
    let mut sent = agent(name);
    sent["context_schema"] = schema;
    api.post(&format!("{AGENTS}/agents"), sent).await
}

/// The places and texts of a list of violations.
fn listed(answer: &Answer) -> Vec<(String, String)> {
    assert_eq!(answer.status, 422, "{}", answer.body);
    let entries = answer.body["detail"].as_array().expect("a list").iter();
    entries
        .map(|entry| {
            let loc = entry["loc"].as_array().expect("a list").iter();
            let loc: Vec<_> = loc.map(|step| step.to_string().replace('"', "")).collect();
            (loc.join("."), entry["msg"].as_str().expect("text").to_owned())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nemo_helix_in_context_is_refused_whatever_the_schema_says() {
    let api = furnished().await;
    register_with(&api, "any", json!(true)).await.status_is(201);
    for agent in ["calc", "any"] {
        let context = json!({"agent": agent, "context": {"nemo_helix": {}}});
        let detail = "context must not set the reserved key 'nemo_helix'.";
        submit(&api, context).await.answers(422, json!({"detail": detail}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_i1_context_dates_are_rfc_3339() {
    for api in Harness::start_both().await {
        for (name, dialect) in [
            ("seven", "http://json-schema.org/draft-07/schema#"),
            ("latest", "https://json-schema.org/draft/2020-12/schema"),
        ] {
            let mut schema = since();
            schema["$schema"] = json!(dialect);
            register_with(&api, name, schema).await.status_is(201);
            let job = |since: &str| json!({"agent": name, "context": {"since": since}});
            for wrong in [
                "yesterday",
                "2026-10-01",
                "2026-10-01T00:00:00",
                "2026-13-01T00:00:00Z",
                "2024-03-19T26:34:56Z",
            ] {
                let place = "body.spec.context.since".to_owned();
                let text = "context.since: the value is not a \"date-time\"".to_owned();
                assert_eq!(listed(&submit(&api, job(wrong)).await), [(place, text)], "{wrong}");
            }
            for right in
                ["2026-10-01t00:00:00z", "2026-06-30T23:59:60Z", "2026-10-01T00:00:00+02:00"]
            {
                let spec = accepted(&api, job(right)).await;
                assert_eq!(spec["context"], json!({"since": right}));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_i2_every_error_of_the_intended_branch_is_named() {
    for api in Harness::start_both().await {
        register_with(&api, "seed", since()).await.status_is(201);
        let place = |path: &str| format!("body.spec.{path}");
        let context = json!({"sinse": "2026-10-01T00:00:00Z"});
        let mut found = listed(&submit(&api, json!({"agent": "seed", "context": context})).await);
        found.sort_unstable();
        let unknown = "context.sinse: unknown key, did you mean `since`".to_owned();
        let missing = "context.since: required key is missing".to_owned();
        let expected =
            [(place("context.since"), missing.clone()), (place("context.sinse"), unknown)];
        assert_eq!(found, expected);
        // No context is an empty one, and a missing input does not hide what is wrong with it.
        let bare = json!({"spec": {"agent": "seed"}});
        let found = listed(&api.post(&format!("{AGENTS}/jobs/execute"), bare).await);
        let input = (place("input"), "Field required".to_owned());
        assert_eq!(found, [input, (place("context.since"), missing)]);

        let extra = "Extra inputs are not permitted".to_owned();
        for (field, wrong, key) in [
            ("agent", json!({"bogus": {}, "config_format": "nemo-agents-spec-v1"}), "agent.bogus"),
            ("environment", json!({"compute": {}}), "environment.compute"),
            (
                "environment",
                json!({"environment_spec": {"secret": {}}}),
                "environment.environment_spec.secret",
            ),
        ] {
            let mut spec = json!({});
            spec[field] = wrong;
            assert_eq!(listed(&submit(&api, spec).await), [(place(key), extra.clone())]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_i3_references_are_refused_where_a_subschema_can_stand() {
    for api in Harness::start_both().await {
        for (schema, pointer) in [
            (json!({"$ref": "http://127.0.0.1:9/x"}), "/$ref"),
            (json!({"$ref": "#/$defs/a"}), "/$ref"),
            (json!({"$dynamicRef": "#a"}), "/$dynamicRef"),
            (json!({"$recursiveRef": "#"}), "/$recursiveRef"),
            (json!({"allOf": [{"allOf": [{"$ref": "#"}]}]}), "/allOf/0/allOf/0/$ref"),
            (json!({"$schema": "http://127.0.0.1:9/meta"}), "/$schema"),
        ] {
            let found = listed(&register_with(&api, "bad", schema).await);
            assert_eq!(found.len(), 1, "{found:?}");
            let (place, text) = &found[0];
            assert!(place.starts_with("body.context_schema."), "{place}");
            assert!(text.contains(&format!("context_schema#{pointer}: ")), "{text}");
        }
        let allowed = json!({
            "properties": {"$ref": {"const": {"$ref": "#"}}},
            "enum": [{"$ref": "x"}], "default": {"$ref": "x"}, "examples": [{"$ref": "x"}],
        });
        let made = register_with(&api, "good", allowed.clone()).await;
        assert_eq!((made.status, &made.body["context_schema"]), (201, &allowed));
        // As agent.yaml has it.
        let mut lifted = agent("lifted");
        lifted["config"]["helix_registration"] = json!({"context_schema": {"$ref": "#"}});
        let found = listed(&api.post(&format!("{AGENTS}/agents"), lifted).await);
        assert!(found[0].1.contains("context_schema#/$ref: "), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_i4_schemas_and_patterns_are_bounded() {
    for api in Harness::start_both().await {
        let pattern = json!({"properties": {"text": {"pattern": "^(a+)+$"}}});
        register_with(&api, "pattern", pattern).await.status_is(201);
        let text = format!("{}!", "a".repeat(40));
        let begun = Instant::now();
        let job = json!({"agent": "pattern", "context": {"text": text}});
        let found = listed(&submit(&api, job).await);
        assert!(found[0].1.starts_with("context.text: "), "{found:?}");
        // Whoever tried every way to match it would need hours.
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());

        let nested =
            (0..10_000).fold("{}".to_owned(), |below, _| format!(r#"{{"allOf":[{below}]}}"#));
        let body = json!({"name": "deep", "config": {}}).to_string();
        let body =
            body.replace(r#""config":{}"#, &format!(r#""config":{{}},"context_schema":{nested}"#));
        let deep = api.raw("POST", &format!("{AGENTS}/agents"), "application/json", &body).await;
        assert_eq!((deep.status, &deep.body["detail"][0]["type"]), (422, &json!("json_invalid")));

        let large = json!({"description": "x".repeat(5_000_000)});
        for (schema, text) in [
            (large, "has 5000018 bytes, the limit is 262144 bytes"),
            (json!({"type": "strin"}), "context_schema#/type: "),
            (json!({"minimum": "3"}), "context_schema#/minimum: "),
            (json!([]), "context_schema#: "),
        ] {
            let found = listed(&register_with(&api, "bad", schema).await);
            assert!(found.len() == 1 && found[0].1.contains(text), "{found:?}");
        }
        let made = register_with(&api, "any", json!(true)).await;
        assert_eq!((made.status, &made.body["context_schema"]), (201, &json!(true)));
        accepted(&api, json!({"agent": "any", "context": {"any": "thing"}})).await;
    }
}
