//! The command line as people and scripts use it, against `errand up`.

mod contexts;
mod environments;
mod exits;
mod lists;
mod proxy;
mod register;
mod rerun;
mod submission;
mod things;
mod watch;

use std::process::Output;

use serde_json::Value;

use crate::harness::Platform;

/// The greeter: an agent that says hello to its input, written into a directory.
const GREETER: &str = "config_format: nemo-agents-spec-v1
name: greeter
default_harness: script
harnesses:
  script:
    kind: script
    settings: {command: [/bin/sh, -c, 'read name; echo \"hello $name\" | tee said.txt']}
";

/// Runs a command to its end.
pub fn run(platform: &Platform, args: &[&str]) -> Output {
    platform.cli().args(args).current_dir(platform.scratch()).output().expect("errand runs")
}

/// The one JSON document that a command prints when it succeeds.
#[track_caller]
pub fn json(platform: &Platform, args: &[&str]) -> Value {
    let output = run(platform, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON document")
}

/// Runs a command that fails, and gives what it says.
#[track_caller]
pub fn fails(platform: &Platform, args: &[&str], code: i32) -> String {
    let output = run(platform, args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    text(output.stderr)
}

pub fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

/// The values of a key in a list's entries.
pub fn each(list: &Value, key: &str) -> Vec<String> {
    let entries = list["data"].as_array().expect("a list").iter();
    entries.map(|entry| entry[key].as_str().expect("text").to_owned()).collect()
}

/// Registers the greeter in a workspace.
#[track_caller]
pub fn register_greeter(platform: &Platform, workspace: &str, name: &str) {
    let dir = platform.scratch().join(format!("{workspace}-{name}"));
    std::fs::create_dir(&dir).expect("a directory");
    let file = dir.join("agent.yaml");
    std::fs::write(&file, GREETER).expect("a file");
    let file = file.to_str().expect("a path");
    json(platform, &["agents", "register", "-w", workspace, "--name", name, "-c", file]);
}
