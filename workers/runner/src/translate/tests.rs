use std::collections::BTreeMap;

use errand_runner::{Limits, Network, Sandbox};
use serde_json::json;

use super::*;

fn launch(agent: Value) -> Launch {
    Launch {
        version: 1,
        run: "run-1".into(),
        job_name: "job-1".into(),
        workspace: "default".into(),
        agent,
        input: String::new(),
        context: Map::new(),
        timeout_seconds: 30.0,
        idle_timeout_seconds: None,
        grace_seconds: 1.0,
        lease_seconds: None,
        env: BTreeMap::from([
            ("NEMO_JOB_ID".to_owned(), "job-1".to_owned()),
            ("odd-name".to_owned(), "x".to_owned()),
        ]),
        adapter_dirs: Vec::new(),
        python: None,
        readable: Vec::new(),
        output_limit_bytes: 1,
        limits: Limits::default(),
        cgroup: None,
        sandbox: Sandbox::None,
        network: Network::Host,
    }
}

fn translate(agent: Value) -> Result<Value, Error> {
    fabric_config(
        &launch(agent),
        &Surroundings {
            base: Path::new("/base"),
            adapter_dirs: vec!["/adapters".into()],
            secrets: &["TOKEN"],
            deadline: Timestamp::UNIX_EPOCH,
        },
    )
}

fn claude(rest: Value) -> Value {
    let mut agent = json!({
        "config_format": "nemo-agents-spec-v1",
        "name": "analyst",
        "default_harness": "main",
        "harnesses": {"main": {"kind": "claude", "settings": {"permission_mode": "acceptEdits"}}},
        "models": {"default": {"provider": "anthropic", "model": "m-1"}},
    });
    for (key, value) in object(&rest) {
        agent[key] = value;
    }
    agent
}

fn check(agent: Value, pointer: &str, expected: Value) {
    let config = translate(agent).expect("the definition is fine");
    let found = config.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(found, expected, "{pointer} of {config:#}");
}

fn check_error(agent: Value, expected: &str) {
    let error = translate(agent).expect_err("the definition is wrong");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_harness_becomes_its_adapter() {
    check(
        claude(json!({"description": ""})),
        "/harness",
        json!({
            "adapter_id": "nvidia.fabric.claude",
            "resolution": "preinstalled",
            "settings": {"permission_mode": "acceptEdits"},
        }),
    );
    check(claude(json!({})), "/metadata", json!({"name": "analyst"}));
    let own =
        json!({"main": {"kind": "nvidia.fabric.acme", "model": {"provider": "p", "model": "own"}}});
    let agent = claude(json!({"harnesses": own}));
    check(agent.clone(), "/harness/adapter_id", json!("nvidia.fabric.acme"));
    check(agent, "/models/default/model", json!("own"));
}

#[test]
fn an_unknown_harness_kind_is_named_with_the_known_ones() {
    let text = "Unsupported harness kind 'x'. Supported harness kinds: claude, codex, \
        deepagents, hermes, nooa-bench-agent, pi, remote-agent, script; or a fully-qualified \
        Fabric adapter id starting with 'nvidia.fabric.'.";
    check_error(claude(json!({"harnesses": {"main": {"kind": "x"}}})), text);
}

#[test]
fn models_must_be_there_and_keep_their_extensions() {
    check_error(
        claude(json!({"models": {}})),
        "Harness 'main' does not define a model and no models.default is configured.",
    );
    check_error(
        json!({"name": "w", "workflow": {"target_id": "t"}}),
        "Workflow requires models.default to be configured.",
    );
    let model =
        json!({"provider": "p", "model": "m", "base_url": null, "extensions": {"tier": "x"}});
    check(
        claude(json!({"models": {"default": model}})),
        "/models/default",
        json!({"provider": "p", "model": "m", "tier": "x"}),
    );
    let model = json!({"provider": "p", "model": "m", "extensions": {"model": "n"}});
    check_error(
        claude(json!({"models": {"default": model}})),
        "Model extensions may not override declared model fields: model. Set these as \
         top-level model fields instead of under extensions.",
    );
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    check_error(
        claude(json!({"environment": {"provider": "openshell"}})),
        "agents.execute jobs only support local Fabric environments.",
    );
    check_error(
        claude(json!({"prompts": {"a": "b"}})),
        "prompts are not supported by Fabric; use instructions.system instead.",
    );
    check_error(
        claude(json!({"runtime": {"artifacts": "../x"}})),
        "Local artifacts path must remain within the agent base directory.",
    );
    check_error(
        claude(json!({"default_harness": "b", "harnesses": {"d": {}, "c": {}}})),
        "default_harness must reference one of harnesses: c, d",
    );
}

#[test]
fn secrets_and_platform_variables_are_passed_by_name_only() {
    let env = json!({"PLAIN": "1", "NEMO_JOB_ID": "forged", "TOKEN": "forged"});
    let agent = claude(json!({"environment": {"env": env, "workspace": "w"}}));
    check(
        agent.clone(),
        "/environment/env",
        json!({"PLAIN": "1", "NEMO_JOB_DEADLINE": "1970-01-01T00:00:00Z"}),
    );
    check(agent.clone(), "/environment/env_names", json!(["NEMO_JOB_ID", "TOKEN"]));
    check(agent, "/environment/workspace", json!("/base/w"));
}

#[test]
fn fabrics_own_limit_is_behind_ours() {
    let with = |own: Value| claude(json!({"runtime": {"timeout_seconds": own, "max_turns": 3}}));
    check(with(Value::Null), "/runtime", json!({"timeout_seconds": 40.0, "max_turns": 3}));
    check(with(json!(4)), "/runtime/timeout_seconds", json!(8.0));
    check(with(json!(400)), "/runtime/timeout_seconds", json!(40.0));
}

#[test]
fn optional_sections_appear_only_when_they_say_something() {
    let empty = claude(json!({
        "skills": {"paths": []}, "tools": {"blocked": []}, "mcp": {"servers": {}},
        "instructions": {}, "telemetry": {},
    }));
    for section in ["/skills", "/tools", "/mcp", "/instructions", "/telemetry", "/relay"] {
        check(empty.clone(), section, Value::Null);
    }
    let server = json!({"transport": "sse", "url": "http://x", "allowed_tools": null});
    let filled = claude(json!({
        "skills": {"paths": ["skills/a"]},
        "tools": {"blocked": ["Bash"]},
        "mcp": {"servers": {"s": server}},
        "instructions": {"system": {"content": "c", "mode": null}},
    }));
    check(filled.clone(), "/skills", json!({"paths": ["skills/a"]}));
    check(filled.clone(), "/tools", json!({"blocked": ["Bash"]}));
    check(filled.clone(), "/instructions", json!({"system": {"content": "c"}}));
    check(
        filled,
        "/mcp/servers/s",
        json!({"transport": "sse", "url": "http://x", "exposure": "harness_native"}),
    );
}

#[test]
fn relay_is_wired_only_when_telemetry_is_on() {
    let telemetry = json!({
        "enabled": true, "output_dir": "out", "project": null,
        "atif": {"enabled": true, "storage": null},
        "atof": {"filename": "f.jsonl", "endpoints": [{"url": "http://x"}]},
        "opentelemetry": {"enabled": true, "endpoints": [{"type": "tempo", "endpoint": "e"}]},
    });
    let agent = claude(json!({"telemetry": telemetry}));
    check(agent.clone(), "/telemetry", json!({"providers": {"relay": {}}}));
    check(
        agent,
        "/relay",
        json!({
            "output_dir": "out",
            "observability": {
                "version": 4,
                "atif": {
                    "enabled": true, "output_directory": "out",
                    "agent_name": "analyst", "model_name": "m-1",
                },
                "atof": {
                    "enabled": false,
                    "sinks": [
                        {"type": "file", "filename": "f.jsonl"},
                        {"type": "stream", "url": "http://x"},
                    ],
                },
                "opentelemetry": {
                    "enabled": true,
                    "endpoints": [{"type": "tempo", "endpoint": "e", "service_name": "analyst"}],
                },
            },
        }),
    );
    // Fabric takes a missing list and no null.
    let sinks = json!({"enabled": true, "file_sinks": [{"path": "spans"}]});
    check(
        claude(json!({"telemetry": {"enabled": true, "opentelemetry": sinks}})),
        "/relay/observability/opentelemetry",
        sinks,
    );
    check_error(
        claude(json!({"telemetry": {"enabled": true, "provider": "otel"}})),
        "Unsupported telemetry provider 'otel'. Only 'relay' is supported.",
    );
}

#[test]
fn the_scripts_command_travels_under_a_name_that_fabric_does_not_execute() {
    let script = |settings: Value| {
        json!({
            "name": "s", "default_harness": "script",
            "harnesses": {"script": {"kind": "script", "settings": settings}},
        })
    };
    let fine = script(json!({"command": ["/bin/sh", "agent.sh"], "allow_empty": true}));
    check(
        fine.clone(),
        "/harness/settings",
        json!({"allow_empty": true, "argv": ["/bin/sh", "agent.sh"]}),
    );
    // Its deadline comes with the request, not with the plan.
    check(fine, "/environment/env", json!({}));
    for wrong in [json!({}), json!({"command": []}), json!({"command": "sh"})] {
        check_error(
            script(wrong),
            "harness 'script' needs settings.command: a list of strings, the program and its \
             arguments",
        );
    }
    check_error(
        script(json!({"command": ["x"], "argv": ["y"]})),
        "harness 'script' has the unknown setting 'argv'; the script harness knows command and \
         allow_empty",
    );
}
