use serde_json::{Value, json};

use super::*;
use crate::catalog::{Profile, Settings, agent_config, shape};

/// An environment spec as it is read from a request.
fn spec(given: Value) -> Value {
    let environment = json!({"environment_spec": given});
    let read = shape::read(&Shape::Object(&ENVIRONMENT), &environment, &[]);
    read.expect("it is well formed")["environment_spec"].take()
}

fn config() -> Value {
    let config = json!({
        "config_format": "nemo-agents-spec-v1",
        "name": "calc",
        "default_harness": "echo",
        "harnesses": {"echo": {"kind": "script", "settings": {"command": ["sh"]}}},
        "mcp": {"servers": {"search": {"transport": "http", "url": "old", "env": {"A": "1"}}}},
        "environment": {"provider": "docker", "env": {"KEEP": "1", "B": "agent"}},
    });
    Value::Object(agent_config::normalise(&config).expect("it is valid"))
}

#[test]
fn the_spec_wins_where_it_says_something() {
    let mut merged = config();
    let secrets = merge(
        &mut merged,
        &spec(json!({
            "env": {"B": "spec"},
            "workspace_path": "ws",
            "settings": {"s": 1},
            "model_provider_override": {"base_url": "http://m", "api_key": "KEY", "provider": "p"},
            "secrets": {"TOK": "tavily"},
            "mcp": {
                "search": {"url": "new", "env": {"C": "2"}, "secrets": {"S": "default/search"}},
                "undeclared": {"url": "x", "secrets": {"NEVER": "never"}},
            },
        })),
    )
    .expect("it merges");
    assert_eq!(merged["environment"]["provider"], "docker", "what is not given does not override");
    assert_eq!(merged["environment"]["workspace"], "ws");
    assert_eq!(merged["environment"]["env"], json!({"KEEP": "1", "B": "spec"}));
    assert_eq!(merged["environment"]["settings"], json!({"s": 1}));
    let model = json!({"base_url": "http://m", "provider": "p", "api_key_env": "KEY"});
    assert_eq!(merged["models"]["default"], model);
    let server = &merged["mcp"]["servers"]["search"];
    assert_eq!((&server["url"], &server["env"]), (&json!("new"), &json!({"A": "1", "C": "2"})));
    assert!(merged["mcp"]["servers"].get("undeclared").is_none());
    let expected = [("S", "default/search"), ("TOK", "tavily")];
    let expected = expected.map(|(name, reference)| (name.to_owned(), reference.to_owned()));
    assert_eq!(secrets, Secrets::from(expected));
}

#[test]
fn clashes_are_refused() {
    let check = |given: Value, expected: &str| {
        assert_eq!(merge(&mut config(), &spec(given)), Err(expected.to_owned()));
    };
    check(
        json!({"secrets": {"K": "a"}, "mcp": {"search": {"url": "u", "secrets": {"K": "b"}}}}),
        "Secret env var 'K' is bound to conflicting references 'a' and 'b' in the environment \
         spec.",
    );
    check(
        json!({"secrets": {"KEEP": "a"}}),
        "Env var(s) KEEP are bound both as a secret and as a plaintext value (environment.env). \
         Use one or the other.",
    );
    check(
        json!({"secrets": {"A": "a"}}),
        "Env var(s) A are bound both as a secret and as a plaintext value \
         (mcp.servers.search.env). Use one or the other.",
    );
}

#[test]
fn compute_is_checked_against_the_profile() {
    let big = Profile { no_limits: [].into(), gpus: 2, ..Settings::default().profile };
    let check = |profile: &Profile, part: &str, key: &str, value: &str, expected: &str| {
        let compute = json!({"resources": {part: {key: value}}});
        let text = check_compute(&compute, profile).err().unwrap_or_default();
        assert!(text.starts_with(expected) && text.is_empty() == expected.is_empty(), "{text}");
    };
    for (key, value) in [("cpu", "500m"), ("memory", "1.5Gi"), ("nvidia.com/gpu", "2")] {
        check(&big, "limits", key, value, "");
    }
    check(
        &big,
        "limits",
        "ephemeral-storage",
        "1Gi",
        "Unsupported compute resource key(s) in limits: ephemeral-storage. agents.execute jobs \
         support only cpu, memory, nvidia.com/gpu.",
    );
    check(
        &big,
        "limits",
        "nvidia.com/gpu",
        "one",
        "Invalid 'nvidia.com/gpu' value 'one'; expected an integer GPU count.",
    );
    check(&big, "limits", "nvidia.com/gpu", "3", "limits.nvidia.com/gpu: the execution profile");
    for wrong in ["lots", "", "-1", "0", "1 Gi", "inf"] {
        check(&big, "limits", "cpu", wrong, "Invalid 'cpu' value");
    }
    let plain = Settings::default().profile;
    check(&plain, "limits", "cpu", "1", "limits.cpu: the execution profile 'default' cannot hold");
    check(&plain, "requests", "cpu", "1", "");
    check(&plain, "requests", "cpu", "0", "");
}

#[test]
fn compute_is_read_in_base_units() {
    let big = Profile { no_limits: [].into(), gpus: 2, ..Settings::default().profile };
    let check = |resources: Value, expected: Result<Value, &str>| {
        let read = check_compute(&json!({"resources": resources}), &big);
        let read = read.map(|it| serde_json::to_value(it).expect("it is JSON"));
        assert_eq!(read, expected.map_err(str::to_owned), "{resources}");
    };
    check(
        json!({"limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
               "requests": {"cpu": "500m"}}),
        Ok(json!({
            "limits": {"cpu_millis": 2000, "memory_bytes": 4_294_967_296_u64, "gpus": 1},
            "requests": {"cpu_millis": 500},
        })),
    );
    check(json!({"limits": {}, "requests": {}}), Ok(json!({"limits": {}, "requests": {}})));
    check(
        json!({"limits": {"cpu": "1", "memory": "1Ki"}, "requests": {"cpu": "1001m", "memory": "1024"}}),
        Err("requests.cpu '1001m' is above limits.cpu '1'."),
    );
    check(
        json!({"limits": {"cpu": "lots", "disk": "1"}}),
        Err("Invalid 'cpu' value 'lots' in limits; expected a Kubernetes quantity, for example \
             500m, 2 or 1.5Gi. Unsupported compute resource key(s) in limits: disk. agents.execute \
             jobs support only cpu, memory, nvidia.com/gpu."),
    );
}
