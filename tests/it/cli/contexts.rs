//! Contexts: which server and workspace commands talk to.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::text;
use crate::harness::Platform;

/// Runs a command that has only this file of contexts to go by.
fn run(config: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_errand"));
    command.args(args).env("ERRAND_CONFIG", config);
    for variable in ["BASE_URL", "CONTEXT", "OUTPUT_FORMAT", "TOKEN", "WORKSPACE"] {
        command.env_remove(format!("ERRAND_{variable}"));
    }
    command.output().expect("errand runs")
}

/// Runs a command that succeeds, and gives its stdout and stderr.
#[track_caller]
fn succeeds(config: &Path, args: &[&str]) -> (String, String) {
    let output = run(config, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn contexts_are_made_used_and_forgotten() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = &dir.path().join("deep/config.yaml");
    let set = ["config", "set", "--base-url", "http://one:1/", "--workspace", "w"];
    let (_, said) = succeeds(config, &set);
    assert_eq!(said, "Context 'default' created and set as current\n");
    let other = ["config", "set", "--context", "team", "--base-url", "http://two:2"];
    let (_, said) = succeeds(config, &other);
    let hint = "To make it current, run: errand config use-context team";
    assert_eq!(said, format!("Context 'team' created\n{hint}\n"));
    let (name, _) = succeeds(config, &["config", "current-context"]);
    assert_eq!(name, "default\n");
    let (_, said) = succeeds(config, &["config", "use-context", "team"]);
    assert_eq!(said, "Switched to context 'team'\n");
    let (view, _) = succeeds(config, &["config", "view"]);
    let view: Value = serde_json::from_str(&view).expect("JSON");
    assert_eq!(
        (&view["current_context"], &view["base_url"]),
        (&"team".into(), &"http://two:2".into())
    );
    assert_eq!(view["contexts"]["default"]["workspace"], "w", "{view}");
    let (_, said) = succeeds(config, &["config", "delete-context", "team"]);
    assert_eq!(said, "Deleted context 'team'\nSwitched to context 'default'\n");

    for (args, words) in [
        (&["config", "delete-context", "team"][..], "no context 'team'"),
        (&["config", "use-context", "team"], "no context 'team'"),
        (&["config", "set"], "nothing to set"),
        (&["config", "set", "--base-url", "one:1"], "Invalid base URL: 'one:1'"),
        (&["jobs", "list", "--context", "team"], "no context 'team'"),
        (&["jobs", "list", "--workspace", ""], "a name cannot be empty"),
    ] {
        let output = run(config, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(text(output.stderr).contains(words), "{args:?}");
    }
}

/// What a variable says is for this call; storing it would outlast the variable.
#[test]
fn variables_are_used_and_not_stored() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = dir.path().join("config.yaml");
    let errand = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_errand"))
            .args(args)
            .env("ERRAND_CONFIG", &config)
            .env("ERRAND_BASE_URL", "http://variable:1")
            .env("ERRAND_WORKSPACE", "")
            .output()
            .expect("errand runs");
        assert!(output.status.success(), "{args:?}: {output:?}");
        text(output.stdout)
    };
    errand(&["config", "set", "--workspace", "w"]);
    let view: Value = serde_json::from_str(&errand(&["config", "view"])).expect("JSON");
    assert_eq!((&view["base_url"], &view["workspace"]), (&"http://variable:1".into(), &"w".into()));
    assert!(view["contexts"]["default"]["base_url"].is_null(), "{view}");
}

#[tokio::test]
async fn commands_use_the_current_context() {
    let platform = Platform::start().await;
    let config = &platform.scratch().join("config.yaml");
    let http = platform.run["http"].as_str().expect("run.json names the address");
    succeeds(config, &["config", "set", "--base-url", http]);
    succeeds(config, &["workspaces", "create", "research"]);
    succeeds(
        config,
        &["config", "set", "--context", "r", "--base-url", http, "-w", "research", "--activate"],
    );
    let (made, _) = succeeds(config, &["filesets", "create", "data"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    assert_eq!(made["workspace"], "research", "{made}");
    let elsewhere = run(config, &["filesets", "get", "data", "--context", "default"]);
    assert_eq!(elsewhere.status.code(), Some(4), "{elsewhere:?}");
}
