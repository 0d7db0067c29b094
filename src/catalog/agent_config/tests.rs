use proptest::prelude::*;
use serde_json::json;

use super::*;

fn calculator() -> Value {
    json!({
        "config_format": "nemo-agents-spec-v1",
        "name": "calc",
        "default_harness": "echo",
        "harnesses": {"echo": {"kind": "script", "settings": {"command": ["./run"]}}},
        "models": {"default": {"provider": "openai", "model": "none"}},
    })
}

/// The calculator with one value replaced; null removes it.
fn with(pointer: &str, value: Value) -> Value {
    let mut config = calculator();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let parent = config.pointer_mut(parent).expect("the parent exists");
    match value {
        Value::Null => drop(parent.as_object_mut().expect("an object").shift_remove(key)),
        value => parent[key] = value,
    }
    config
}

#[test]
fn defaults_are_filled_in_and_nulls_dropped() {
    let expected = json!({
        "config_format": "nemo-agents-spec-v1",
        "name": "calc",
        "description": "",
        "default_harness": "echo",
        "harnesses": {"echo": {"kind": "script", "settings": {"command": ["./run"]}}},
        "models": {"default": {
            "provider": "openai", "model": "none", "settings": {}, "extensions": {},
        }},
        "prompts": {},
        "runtime": {},
        "environment": {
            "provider": "local", "workspace": "./workspace", "artifacts": "./artifacts",
            "settings": {}, "env": {}, "connection": {}, "metadata": {},
        },
        "telemetry": {},
    });
    let mut sent = calculator();
    sent["tools"] = Value::Null;
    sent["runtime"] = json!({"max_turns": null});
    let read = normalise(&sent).expect("it is valid");
    // As text: the order of the keys counts, too.
    assert_eq!(Value::Object(read.clone()).to_string(), expected.to_string());
    assert_eq!(normalise(&Value::Object(read.clone())), Ok(read), "normal form is stable");
}

#[test]
fn refusals() {
    let check = |config: Value, expected: &str| {
        let text = normalise(&config).expect_err(expected);
        assert!(text.contains(expected), "expected {expected:?} in {text:?}");
    };
    check(with("/bogus", json!(1)), "bogus\n  Extra inputs are not permitted");
    check(with("/name", Value::Null), "name\n  Field required [type=missing]");
    check(with("/config_format", json!("v2")), "Input should be 'nemo-agents-spec-v1'");
    check(with("/harnesses/echo/kind", Value::Null), "harnesses.echo.kind\n  Field required");
    check(with("/harnesses/echo/x", json!(1)), "harnesses.echo.x\n  Extra inputs");
    check(
        with("/default_harness", Value::Null),
        "Configure workflow or default_harness with harnesses",
    );
    check(
        with("/default_harness", json!("zz")),
        "default_harness must reference one of harnesses: echo",
    );
    check(
        with("/workflow", json!({"target_id": "t"})),
        "workflow and harness selection are mutually exclusive",
    );
    check(with("/models/default/top_p", json!(1.5)), "less than or equal to 1");
    check(with("/models/default/top_p", json!("0.5")), "Input should be a valid number");
    for wrong in [json!(0), json!(-1), json!(1.5), json!("9")] {
        check(with("/models/default/max_tokens", wrong), "models.default.max_tokens");
    }
    check(
        with("/models/default/extensions", json!({"top_p": 1, "model": "x"})),
        "Model extensions may not override declared model fields: model, top_p.",
    );
    check(
        with("/instructions", json!({"system": {"content": " "}})),
        "instructions.system.content\n  Value error, must not be blank",
    );
    check(with("/runtime", json!({"timeout_seconds": 0})), "greater than 0");
    check(with("/skills", json!({"paths": "x"})), "Input should be a valid list");
    for (key, value) in [("workspace", "/abs"), ("artifacts", "a/../.."), ("workspace", "a\0")] {
        check(with("/environment", json!({key: value})), &format!("environment.{key}\n"));
    }
    check(with("/runtime", json!({"artifacts": "../up"})), "runtime.artifacts\n");
    check(json!([]), "Input should be a valid dictionary");
}

#[test]
fn a_script_names_its_command() {
    let settings = |settings: Value| normalise(&with("/harnesses/echo/settings", settings));
    settings(json!({"command": ["/bin/sh", "-c", "true"]})).expect("it is valid");
    for wrong in [
        json!({}),
        json!({"command": null}),
        json!({"command": []}),
        json!({"command": "sh"}),
        json!({"command": ["sh", 1]}),
        json!({"command": ["sh", ""]}),
        json!({"command": ["sh\0"]}),
    ] {
        let text = settings(wrong.clone()).expect_err("it cannot run");
        let expected = "harnesses.echo\n  Value error, the script harness needs settings.command";
        assert!(text.contains(expected), "{wrong}: {text}");
    }
    let other = with("/harnesses/echo", json!({"kind": "nvidia.fabric.claude"}));
    normalise(&other).expect("other harnesses know their own settings");
}

#[test]
fn whole_floats_and_empty_tool_lists_are_kept() {
    let config = with("/models/default/max_tokens", json!(1024.0));
    let read = normalise(&config).expect("a whole float is an integer");
    assert_eq!(read["models"]["default"]["max_tokens"], json!(1024));

    let server = |tools: Value| json!({"servers": {"s": {"transport": "t", "url": "u", "allowed_tools": tools}}});
    let read = normalise(&with("/mcp", server(json!([])))).expect("no tools at all");
    assert_eq!(read["mcp"]["servers"]["s"]["allowed_tools"], json!([]));
    let read = normalise(&with("/mcp", server(Value::Null))).expect("every tool");
    assert!(read["mcp"]["servers"]["s"].get("allowed_tools").is_none());
}

#[test]
fn a_workflow_needs_no_harness() {
    let config = json!({
        "config_format": "nemo-agents-spec-v1", "name": "w", "workflow": {"target_id": "my.target"},
    });
    let read = normalise(&config).expect("it is valid");
    assert_eq!(read["workflow"], json!({"target_id": "my.target", "settings": {}}));
}

/// Any JSON, with keys that the schema knows more often than not.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(FORMAT)),
        ".{0,6}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("config_format".to_owned()),
        Just("name".to_owned()),
        Just("harnesses".to_owned()),
        Just("default_harness".to_owned()),
        Just("models".to_owned()),
        Just("runtime".to_owned()),
        Just("environment".to_owned()),
        Just("kind".to_owned()),
        Just("max_tokens".to_owned()),
        ".{0,6}",
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_makes_it_panic(config in any_json()) {
        if let Ok(read) = normalise(&config) {
            prop_assert_eq!(normalise(&Value::Object(read.clone())), Ok(read));
        }
    }

    #[test]
    fn no_value_in_a_known_place_makes_it_panic(
        value in any_json(),
        place in prop::sample::select(vec![
            "/models/default", "/harnesses/echo", "/environment", "/runtime", "/mcp", "/telemetry",
        ]),
    ) {
        let _ = normalise(&with(place, value));
    }
}
