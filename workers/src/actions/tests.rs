use std::fs;

use tempfile::TempDir;

use super::*;

/// Installs one manifest beside a program `run.sh`.
fn install(manifest: &Value) -> Result<Registry, String> {
    let directory = TempDir::new().expect("a temporary directory");
    let own = directory.path().join("one");
    fs::create_dir(&own).expect("a directory");
    fs::write(own.join("run.sh"), "").expect("a program");
    fs::write(own.join("action.json"), manifest.to_string()).expect("a manifest");
    let built_in = Registry::built_in(Webhooks::new(false));
    built_in.install(directory.path()).map_err(|error| error.to_string())
}

fn manifest(key: &str, value: Value) -> Value {
    let mut manifest = json!({
        "kind": "test.action",
        "title": "Test",
        "description": "Tests.",
        "command": ["/bin/sh", "run.sh", "--flag"],
    });
    manifest[key] = value;
    manifest
}

#[test]
fn words_of_a_command_are_looked_for_beside_the_manifest() {
    let registry = install(&manifest("title", json!("Test"))).expect("it installs");
    let Way::Program(manifest) = &registry.get("test.action").expect("it is there").way else {
        panic!("it is a program");
    };
    assert_eq!((&*manifest.command[0], &*manifest.command[2]), ("/bin/sh", "--flag"));
    assert!(manifest.command[1].ends_with("/one/run.sh"), "{:?}", manifest.command);
    install(&self::manifest("command", json!(["run.sh"]))).expect("a file beside it is a program");
    install(&self::manifest("command", json!(["sh", "-c", "true"]))).expect("sh is on PATH");
}

#[test]
fn a_wrong_manifest_names_file_and_field() {
    let check = |key: &str, value: Value, expected: &str| {
        let error = install(&manifest(key, value)).expect_err("it must be refused");
        assert!(error.contains("/one/action.json: "), "{error}");
        assert!(error.contains(expected), "{error}\n{expected}");
    };
    check("kind", json!("No Kind"), "kind: 'No Kind' should be");
    check("kind", json!(1), "invalid type");
    check("heading", json!(""), "unknown field `heading`");
    check("command", json!([]), "command: expected a program");
    check("command", json!(["./nope.sh"]), "command: './nope.sh' is no file beside the manifest");
    check("command", json!(["no-such-program"]), "command: 'no-such-program' is no file");
    check("timeout_seconds", json!(0), "timeout_seconds: expected more than 0");
    check("secrets", json!({"ERRAND_X": "a"}), "secrets: 'ERRAND_X' is no variable name");
    check("config_schema", json!({"type": "nope"}), "config_schema: it is no JSON Schema");
    check(
        "config_schema",
        json!({"properties": {"a": {"$ref": "https://example.com"}}}),
        "config_schema: it must not use '$ref'",
    );
    let error = install(&manifest("kind", json!("agents.webhook"))).expect_err("it is taken");
    assert!(error.contains("'agents.webhook': the platform's own and "), "{error}");
}

#[test]
fn formats_are_asserted_and_everything_is_said_at_once() {
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "since": {"type": "string", "format": "date-time"},
            "inner": {"type": "object", "additionalProperties": false},
        },
    });
    let registry = install(&manifest("config_schema", schema)).expect("it installs");
    let config = json!({"since": "yesterday", "inner": {"x": 1}});
    let config = config.as_object().expect("an object");
    let refused = registry.check("test.action", config, "w").expect_err("it is wrong").to_string();
    for expected in [
        "Invalid config for post-run action 'test.action': ",
        "name: Field required",
        "since: \"yesterday\" is not a \"date-time\"",
        "inner.x: Extra inputs are not permitted",
    ] {
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
}

#[test]
fn configurations_that_no_run_could_use_are_refused() {
    let registry = Registry::built_in(Webhooks::new(false));
    let check = |kind: &str, config: Value, expected: &str| {
        let config = config.as_object().expect("an object");
        let refused = registry.check(kind, config, "w").expect_err("it is refused").to_string();
        assert!(refused.contains(expected), "{refused}\n{expected}");
    };
    let headers: Map<String, Value> =
        (0..40_000).map(|number| (format!("x-{number}"), json!(""))).collect();
    let config = json!({"url": "https://example.com", "headers": headers});
    check("agents.webhook", config, "properties");
    let results = "fileset: names beginning with 'job-fileset-' are kept for the results of jobs";
    for (fileset, expected) in [("job-fileset-a", results), ("a--b", "match"), ("ab-", "match")] {
        let config = json!({"fileset": fileset, "paths": ["a"]});
        check("agents.export-files", config, expected);
    }
}
