use serde_json::json;

use super::*;

fn body(spec: Value) -> Value {
    let mut full = json!({"agent": "calc", "input": "x"});
    for (key, value) in spec.as_object().expect("an object") {
        full[key] = value.clone();
    }
    json!({"spec": full})
}

#[test]
fn the_request_is_kept_with_its_defaults() {
    let sent = body(json!({"workdir": {"base_workdir": "source#project"}}));
    let request = Request::read(&sent).expect("it is well formed");
    let expected = json!({
        "agent": "calc",
        "input": "x",
        "environment": null,
        "workdir": {"base_workdir": "source#project", "artifact_mounts": []},
        "timeout_seconds": 3600.0,
        "auto_telemetry": true,
        "image": "",
        "context": null,
        "post_run_action": null,
    });
    assert_eq!(request.spec.request.to_string(), expected.to_string());
}

#[test]
fn an_inline_agent_is_kept_as_it_was_sent() {
    let agent = json!({"config_format": "nemo-agents-spec-v1", "config": {"name": "i"}});
    let request = Request::read(&body(json!({"agent": agent}))).expect("it is well formed");
    assert_eq!(request.spec.request["agent"], agent);
    assert!(matches!(request.spec.agent, Agent::Inline { .. }));
}

#[test]
fn the_older_name_of_the_action_is_read() {
    let older = body(json!({"extension": {"kind": "noop"}}));
    let request = Request::read(&older).expect("it is well formed");
    assert_eq!(request.spec.post_run_action.expect("an action").kind, "noop");
    assert_eq!(request.spec.request["post_run_action"], json!({"kind": "noop", "config": {}}));
    assert!(request.spec.request.get("extension").is_none());

    let both = body(json!({"extension": {"kind": "noop"}, "post_run_action": {"kind": "noop"}}));
    assert!(Request::read(&both).is_err());
}

#[test]
fn violations() {
    let check = |sent: Value, place: &str, msg: &str| {
        let found = Request::read(&sent).expect_err(msg);
        let found: Vec<_> = found.iter().map(|entry| (entry.path(), entry.msg.clone())).collect();
        assert!(found.contains(&(place.to_owned(), msg.to_owned())), "{found:?}");
    };
    check(json!({}), "body.spec", "Field required");
    check(
        json!([1]),
        "body",
        "Input should be a valid dictionary or object to extract fields from",
    );
    check(json!({"spec": {"input": "x"}}), "body.spec.agent", "Field required");
    check(
        json!({"spec": {"agent": "a"}, "bogus": 1}),
        "body.bogus",
        "Extra inputs are not permitted",
    );
    check(body(json!({"bogus": 1})), "body.spec.bogus", "Extra inputs are not permitted");
    check(
        body(json!({"agent": "a/b/c"})),
        "body.spec.agent",
        "Value error, Agent ref 'a/b/c' must be an entity name or a 'workspace/name' ref.",
    );
    check(
        body(json!({"agent": {"config": {"workflow": {}}}})),
        "body.spec.agent",
        "Value error, Config format 'nat-workflow-v1' is not supported; agents.execute jobs only \
         support 'nemo-agents-spec-v1'.",
    );
    check(
        body(json!({"agent": {"config_format": "nemo-agents-spec-v1"}})),
        "body.spec.agent",
        "Value error, Inline agent definitions require a non-empty config.",
    );
    check(body(json!({"input": 12})), "body.spec.input", "Input should be a valid string");
    check(
        body(json!({"timeout_seconds": 0})),
        "body.spec.timeout_seconds",
        "Input should be greater than 0",
    );
    check(
        body(json!({"timeout_seconds": "soon"})),
        "body.spec.timeout_seconds",
        "Input should be a valid number, unable to parse string as a number",
    );
    check(
        body(json!({"auto_telemetry": "maybe"})),
        "body.spec.auto_telemetry",
        "Input should be a valid boolean, unable to interpret input",
    );
    check(
        body(json!({"image": " "})),
        "body.spec.image",
        "Value error, Image must not be blank; omit the field to inherit the configured default.",
    );
    check(
        body(json!({"workdir": {"artifact_mounts": [{"ref": "a"}]}})),
        "body.spec.workdir.artifact_mounts.0.mount_path",
        "Field required",
    );
    let mounts = json!([{"ref": "a", "mount_path": "x"}, {"ref": "a", "mount_path": "x/y"}]);
    check(
        body(json!({"workdir": {"artifact_mounts": mounts}})),
        "body.spec.workdir",
        "Value error, artifact_mounts contain overlapping mount paths: 'x' and 'x/y'",
    );
    let mut long = body(json!({}));
    long["name"] = json!("a".repeat(52));
    check(
        long,
        "body",
        "Value error, name must be at most 51 characters when output_location is not set, because \
         the job's artifact fileset is named 'job-fileset-<name>'",
    );
}
