//! A2, and the second half of D: the environment of a job, found and merged.

use super::*;

/// The agent `calc` with a server and some variables of its own.
async fn with_server() -> Harness {
    let api = Harness::start().await;
    let mut calc = agent("calc");
    calc["config"]["mcp"] = json!({"servers": {
        "search": {"transport": "streamable-http", "url": "http://old", "env": {"A": "1"}},
    }});
    calc["config"]["environment"] = json!({
        "env": {"KEEP": "1", "BOTH": "agent"},
        "settings": {"a": 1, "b": 1},
        "ownership": "caller_owned",
    });
    register(&api, "default", calc).await;
    for name in ["openai-key", "search-token"] {
        secret(&api, name).await;
    }
    api
}

fn inline(spec: Value) -> Value {
    json!({"environment": {"environment_spec": spec}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_snapshots_resolved_environment_ref() {
    let api = with_server().await;
    let limits = json!({"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {}});
    let secrets = json!({"OPENAI_API_KEY": "default/openai-key"});
    keep(&api, "environment-specs", json!({"name": "prod-spec", "secrets": secrets})).await;
    keep(&api, "compute-specs", json!({"name": "small", "resources": limits})).await;
    let parts = json!({
        "name": "prod", "environment_spec": "prod-spec", "compute_spec": "default/small",
    });
    keep(&api, "environments", parts).await;
    for reference in ["prod", "default/prod"] {
        let spec = accepted(&api, json!({"environment": reference})).await;
        assert_eq!(spec["request"]["environment"], reference);
        assert_eq!(spec["secrets"], secrets);
        assert_eq!(spec["compute"], json!({"description": "", "resources": limits}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_merges_inline_environment_into_config() {
    let api = with_server().await;
    let environment = json!({
        "environment_spec": {"env": {"NEW": "1"}, "secrets": {"K": "openai-key"}},
        "compute_spec": {"name": "pasted", "resources": {"requests": {"cpu": "1"}}},
    });
    let spec = accepted(&api, json!({"environment": environment})).await;
    assert_eq!(spec["request"]["environment"], environment, "as typed");
    let env = json!({"KEEP": "1", "BOTH": "agent", "NEW": "1"});
    assert_eq!(spec["agent"]["config"]["environment"]["env"], env);
    assert_eq!(spec["secrets"], json!({"K": "openai-key"}));
    let resources = json!({"limits": {}, "requests": {"cpu": "1"}});
    assert_eq!(spec["compute"], json!({"description": "", "resources": resources}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_mcp_secret_indirection_through_environment() {
    let api = with_server().await;
    let mcp = json!({"search": {
        "url": "http://new", "env": {"B": "2"}, "secrets": {"TOKEN": "search-token"},
    }});
    let spec = accepted(&api, inline(json!({"mcp": mcp}))).await;
    let server = &spec["agent"]["config"]["mcp"]["servers"]["search"];
    assert_eq!(server["url"], "http://new");
    assert_eq!(server["env"], json!({"A": "1", "B": "2"}));
    assert_eq!(spec["secrets"], json!({"TOKEN": "search-token"}));
    assert!(!spec["agent"].to_string().contains("search-token"), "{spec}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_with_no_environment_leaves_snapshot_empty() {
    let api = with_server().await;
    let spec = accepted(&api, json!({})).await;
    assert_eq!(spec["request"]["environment"], Value::Null);
    assert_eq!((&spec["compute"], &spec["secrets"]), (&Value::Null, &json!({})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_missing_environment_ref() {
    let text = "AgentEnvironment 'prod' not found in workspace 'default'.";
    refused(&with_server().await, json!({"environment": "prod"}), text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_spec_rejects_environment_spec_selecting_non_local_provider() {
    let text = "only support local Fabric environments";
    refused(&with_server().await, inline(json!({"provider": "docker"})), text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_refs_of_each_kind_are_named_at_once() {
    let api = with_server().await;
    let missing = json!({"environment_spec": "nope", "compute_spec": "other/nope"});
    let text = "AgentEnvironmentSpec 'nope' not found in workspace 'default'. AgentComputeSpec \
                'nope' not found in workspace 'other'.";
    refused(&api, json!({"environment": missing}), text).await;
    let mut stored = missing;
    stored["name"] = json!("dangling");
    keep(&api, "environments", stored).await;
    refused(&api, json!({"environment": "dangling"}), text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bare_names_in_an_environment_of_another_workspace_stay_there() {
    let api = with_server().await;
    workspace(&api, "research").await;
    let there = AGENTS.replace("default", "research");
    let spec = json!({"name": "spec", "env": {"WHERE": "research"}});
    api.post(&format!("{there}/environment-specs"), spec).await.status_is(201);
    let environment = json!({"name": "env", "environment_spec": "spec"});
    api.post(&format!("{there}/environments"), environment).await.status_is(201);
    let spec = accepted(&api, json!({"environment": "research/env"})).await;
    assert_eq!(spec["agent"]["config"]["environment"]["env"]["WHERE"], "research");
    let part = json!({"environment": {"environment_spec": "research/spec"}});
    let spec = accepted(&api, part).await;
    assert_eq!(spec["agent"]["config"]["environment"]["env"]["WHERE"], "research");
}

/// Both ways, stored and inline, must merge alike.
async fn merged(api: &Harness, spec: Value) -> Value {
    let config = accepted(api, inline(spec.clone())).await["agent"]["config"].take();
    let mut stored = spec;
    stored["name"] = json!("stored");
    keep(api, "environment-specs", stored).await;
    let by_name = json!({"environment": {"environment_spec": "stored"}});
    assert_eq!(accepted(api, by_name).await["agent"]["config"], config);
    let path = format!("{AGENTS}/environment-specs/stored");
    api.send("DELETE", &path, None).await.status_is(204);
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec_wins_on_scalars_it_set_and_only_on_those() {
    let api = with_server().await;
    let given = json!({
        "workspace_path": "ws", "artifacts_path": "out", "control_location": "in_env_control",
        "ownership": null,
    });
    let environment = &merged(&api, given).await["environment"];
    for (key, expected) in [
        ("provider", "local"),
        ("workspace", "ws"),
        ("artifacts", "out"),
        ("control_location", "in_env_control"),
        ("ownership", "caller_owned"),
    ] {
        assert_eq!(environment[key], expected, "{key}");
    }
    let untouched = accepted(&api, json!({})).await["agent"]["config"].take();
    assert_eq!(merged(&api, json!({})).await, untouched, "defaults do not override");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_omitted_provider_does_not_force_local() {
    let api = Harness::start().await;
    let mut docker = agent("calc");
    docker["config"]["environment"] = json!({"provider": "docker"});
    register(&api, "default", docker).await;
    keep(&api, "environment-specs", json!({"name": "silent", "env": {"A": "1"}})).await;
    keep(&api, "environment-specs", json!({"name": "null", "provider": null})).await;
    keep(&api, "environment-specs", json!({"name": "local", "provider": "local"})).await;
    let by_name = |name: &str| inline(json!(name));
    let text = "only support local Fabric environments";
    refused(&api, by_name("silent"), text).await;
    refused(&api, by_name("null"), text).await;
    accepted(&api, by_name("local")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dict_fields_and_env_merge_shallowly() {
    let api = with_server().await;
    let given = json!({
        "settings": {"b": {"deep": 2}}, "connection": {"c": 1}, "metadata": {"m": 1},
        "env": {"BOTH": "spec"},
    });
    let environment = &merged(&api, given).await["environment"];
    assert_eq!(environment["settings"], json!({"a": 1, "b": {"deep": 2}}));
    assert_eq!(
        (&environment["connection"], &environment["metadata"]),
        (&json!({"c": 1}), &json!({"m": 1}))
    );
    assert_eq!(environment["env"], json!({"KEEP": "1", "BOTH": "spec"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn override_sets_or_creates_the_default_model() {
    let api = with_server().await;
    let given = json!({"base_url": "http://m", "api_key": "KEY", "provider": "openai"});
    // The agent has no model, and a provider alone makes none that is complete.
    let given = json!({"model_provider_override": given});
    refused(&api, inline(given.clone()), "models.default.model").await;

    let mut with_model = agent("model");
    with_model["config"]["models"] = json!({"default": {"provider": "nvidia", "model": "m"}});
    register(&api, "default", with_model).await;
    let mut job = inline(given);
    job["agent"] = json!("model");
    let spec = accepted(&api, job).await;
    let model = json!({
        "provider": "openai", "model": "m", "api_key_env": "KEY", "base_url": "http://m",
        "settings": {}, "extensions": {},
    });
    assert_eq!(spec["agent"]["config"]["models"]["default"], model);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undeclared_mcp_is_ignored_with_its_secrets() {
    let api = with_server().await;
    let other = json!({"mcp": {"other": {"url": "x", "secrets": {"NEVER": "never"}}}});
    let spec = accepted(&api, inline(other)).await;
    assert_eq!(spec["secrets"], json!({}));
    assert!(spec["agent"]["config"]["mcp"]["servers"].get("other").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_collected_and_may_not_clash() {
    let api = with_server().await;
    let given = |top: &str, server: &str| {
        let server = json!({"url": "u", "secrets": {"K": server}});
        inline(json!({"secrets": {"K": top, "L": "openai-key"}, "mcp": {"search": server}}))
    };
    let spec = accepted(&api, given("openai-key", "openai-key")).await;
    assert_eq!(spec["secrets"], json!({"K": "openai-key", "L": "openai-key"}), "the same twice");
    let text = "Secret env var 'K' is bound to conflicting references 'openai-key' and \
                'search-token' in the environment spec.";
    refused(&api, given("openai-key", "search-token"), text).await;
    for (variable, place) in [("KEEP", "environment.env"), ("A", "mcp.servers.search.env")] {
        let text = format!(
            "Env var(s) {variable} are bound both as a secret and as a plaintext value ({place}). \
             Use one or the other."
        );
        refused(&api, inline(json!({"secrets": {variable: "openai-key"}})), &text).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_specs_are_judged_when_a_job_wants_them() {
    let api = with_server().await;
    for (name, spec, text) in [
        ("docker", json!({"provider": "docker"}), "only support local Fabric environments"),
        (
            "reserved",
            json!({"secrets": {"NHX_BASE_URL": "x"}}),
            "Secret env var(s) NHX_BASE_URL collide",
        ),
        ("plain", json!({"env": {"NHX_X": "1"}}), "Env var(s) NHX_X collide"),
        ("odd", json!({"secrets": {"T": "a b"}}), "Secret reference 'a b' of env var 'T' must be"),
    ] {
        let mut stored = spec;
        stored["name"] = json!(name);
        keep(&api, "environment-specs", stored).await;
        refused(&api, inline(json!(name)), text).await;
    }
    let disk = json!({"name": "disk", "resources": {"limits": {"ephemeral-storage": "1Gi"}}});
    keep(&api, "compute-specs", disk).await;
    let text = "Unsupported compute resource key(s) in limits: ephemeral-storage.";
    refused(&api, json!({"environment": {"compute_spec": "disk"}}), text).await;
    keep(&api, "environment-specs", json!({"name": "gone", "secrets": {"T": "gone"}})).await;
    submit(&api, inline(json!("gone"))).await.status_is(409);
}
