use std::os::unix::fs::symlink;

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn adapter(id: &str) -> Needed {
    Needed::Adapter(id.to_owned())
}

#[test]
fn an_agent_needs_the_adapter_of_its_selected_harness() {
    let agent = |kind: &str| {
        json!({
            "default_harness": "mine",
            "harnesses": {"mine": {"kind": kind}, "other": {"kind": "codex"}},
        })
    };
    assert_eq!(needed(&agent("claude")), Some(adapter("nvidia.fabric.claude")));
    assert_eq!(needed(&agent("nvidia.fabric.foo")), Some(adapter("nvidia.fabric.foo")));
    // The first is part of the runner; the others are refused by it.
    for kind in ["script", "nvidia.fabric.", "foo", ""] {
        assert_eq!(needed(&agent(kind)), None, "{kind}");
    }
    assert_eq!(needed(&json!({})), None);
    assert_eq!(needed(&json!({"default_harness": "none", "harnesses": {}})), None);
    let workflow = json!({"workflow": {"target_id": "a.b"}, "default_harness": null});
    assert_eq!(needed(&workflow), Some(Needed::Workflow("a.b".to_owned())));
}

#[test]
fn what_is_described_anywhere_below_is_there() {
    let dir = TempDir::new().expect("a temporary directory");
    let below = dir.path().join("adapters/foo");
    fs::create_dir_all(&below).expect("a directory");
    let write = |name: &str, text: &str| fs::write(below.join(name), text).expect("a file");
    let dirs = [dir.path(), Path::new("/nowhere")];
    assert!(lacks(&dirs, &adapter("foo")));
    write("foo.fabric-adapter.json", r#"{"adapter_id": "foo"}"#);
    write("bar.fabric-target.json", r#"{"id": "bar"}"#);
    write("baz.json", r#"{"adapter_id": "baz"}"#);
    assert!(!lacks(&dirs, &adapter("foo")));
    assert!(!lacks(&dirs, &Needed::Workflow("bar".to_owned())));
    for missing in [adapter("bar"), adapter("baz"), Needed::Workflow("foo".to_owned())] {
        assert!(lacks(&dirs, &missing), "{missing}");
    }
    assert!(lacks(&[""; 0], &adapter("foo")));
}

/// It may be the very one: who starts the agent says what is wrong with it.
#[test]
fn what_cannot_be_read_may_be_anything() {
    for broken in ["{", "[]", "{}", r#"{"adapter_id": 1}"#] {
        let dir = TempDir::new().expect("a temporary directory");
        fs::write(dir.path().join("a.fabric-adapter.json"), broken).expect("a file");
        assert!(!lacks(&[dir.path()], &adapter("foo")), "{broken}");
    }
    let dir = TempDir::new().expect("a temporary directory");
    symlink("gone", dir.path().join("a.fabric-adapter.json")).expect("a link");
    assert!(!lacks(&[dir.path()], &adapter("foo")));
    // Fabric passes it by, too.
    let dir = TempDir::new().expect("a temporary directory");
    symlink("/", dir.path().join("root")).expect("a link");
    assert!(lacks(&[dir.path()], &adapter("foo")));
}
