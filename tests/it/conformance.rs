//! The reference's own cases about a run, each a test that is named after its case (`test_`
//! dropped), against a real platform with script agents. The cases about requests are beside the
//! HTTP API, in `src/http/tests`.
//!
//! Where ours differs by design, the test says so. A8 (telemetry) does not apply: there is no
//! ingest service to which anything could be sent.

pub mod adapter;
mod integration;
mod logging;
mod run;
mod seed;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// Jobs here end by themselves.
const SOON: Duration = Duration::from_secs(60);

/// An inline agent that runs this in its working directory, whatever is in there.
fn shell(script: &str) -> Value {
    let mut agent = crate::harness::script_agent();
    agent["config"]["name"] = json!("calc");
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", script]);
    agent
}

/// Submits what needs no working directory.
fn spec(script: &str) -> Value {
    json!({"agent": shell(script), "input": "", "timeout_seconds": 300})
}

/// The files below a directory with their texts, sorted.
fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).expect("it is below").display().to_string();
            found.push((name, std::fs::read_to_string(path).expect("it is text")));
        }
    }
    found.sort();
    found
}
