//! A Fabric adapter that answers as a test wants it, for what the script harness cannot do.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Options, Platform, open_directory};

const KIND: &str = "nvidia.fabric.test";

/// A platform that knows the adapter. Its directory lives as long as this.
pub struct Adapter {
    _dir: TempDir,
    pub platform: Platform,
}

/// A directory with the descriptor of an adapter that starts, and on `invoke` runs `answer`, which
/// writes one line of protocol.
pub fn directory(answer: &str) -> TempDir {
    let dir = open_directory();
    let descriptor = json!({
        "contract_version": "fabric.adapter/v1alpha2",
        "adapter_id": KIND,
        "adapter_kind": "process",
        "runner": {"command": "/bin/sh", "script": "adapter.sh"},
        "config": {"accepts": ["models"]},
    });
    let script = format!(
        "read -r start\n\
             echo '{{\"operation\":\"start\",\"outcome\":{{\"status\":\"succeeded\",\"output\":null}}}}'\n\
             read -r invoke\n{answer}\n\
             read -r stop && echo '{{\"operation\":\"stop\",\"outcome\":{{\"status\":\"succeeded\"}}}}'\n"
    );
    let file = dir.path().join("test.fabric-adapter.json");
    fs::write(file, descriptor.to_string()).expect("a file");
    fs::write(dir.path().join("adapter.sh"), script).expect("a file");
    dir
}

impl Adapter {
    /// A platform that knows such an adapter.
    pub async fn start(answer: &str) -> Self {
        let dir = directory(answer);
        let dirs = ("ERRAND__AGENTS__JOBS__ADAPTER_DIRS", dir.path().display().to_string());
        let env = vec![(dirs.0.to_owned(), dirs.1)];
        let platform = Platform::with(Options { env, ..Options::default() }).await;
        Self { _dir: dir, platform }
    }

    /// A spec whose agent is of this adapter's kind.
    pub fn spec(&self) -> Value {
        spec()
    }
}

/// A spec whose agent is of this adapter's kind.
pub fn spec() -> Value {
    let config = json!({
        "config_format": "nemo-agents-spec-v1",
        "name": "calc",
        "default_harness": "test",
        "harnesses": {"test": {"kind": KIND, "model": {"provider": "p", "model": "m"}}},
    });
    json!({
        "agent": {"config_format": "nemo-agents-spec-v1", "config": config},
        "input": "12 * 8",
    })
}

/// A shell command that answers an invocation with this run result.
pub fn returns(result: &Value) -> String {
    let answer =
        json!({"operation": "invoke", "outcome": {"status": "succeeded", "output": result}});
    format!("echo '{answer}'")
}
