//! Batches from the outside: lines go in, results come out, whatever is killed meanwhile.

mod intake;
mod many;
mod outcomes;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Platform;

/// Registers an agent whose whole work is a script; its input is on standard input.
pub async fn register(platform: &Platform, name: &str, script: &str) {
    let config = json!({
        "config_format": "nemo-agents-spec-v1",
        "name": name,
        "default_harness": "script",
        "harnesses": {"script": {"kind": "script", "settings": {"command": ["/bin/sh", "-c", script]}}},
    });
    platform.api().agent(name, config).await;
}

/// Writes a file of lines.
fn specs(platform: &Platform, lines: impl IntoIterator<Item = Value>) -> PathBuf {
    let path = platform.scratch().join("specs.jsonl");
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).expect("a file");
    path
}

/// The entries of an index.
fn index(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("index.jsonl")).expect("there is an index");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A path as an argument.
fn word(path: &Path) -> &str {
    path.to_str().expect("text")
}
