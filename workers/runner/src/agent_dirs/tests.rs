use std::fs;

use serde_json::json;

use super::*;

fn check(environment: Value, expected: Result<(&str, &str), &str>) {
    let agent = json!({ "environment": environment });
    let dirs = AgentDirs::of(Path::new("/base"), &agent);
    match expected {
        Ok((workspace, artifacts)) => assert_eq!(
            dirs.expect("both lie inside"),
            AgentDirs { workspace: workspace.into(), artifacts: artifacts.into() }
        ),
        Err(text) => assert_eq!(dirs.expect_err("one is refused").to_string(), text),
    }
}

#[test]
fn defaults_and_relative_paths_stay_inside() {
    check(json!({}), Ok(("/base/workspace", "/base/artifacts")));
    check(json!({"workspace": "./w/../v/.", "artifacts": "a/b"}), Ok(("/base/v", "/base/a/b")));
}

#[test]
fn absolute_and_escaping_paths_are_refused_in_the_references_words() {
    check(
        json!({"workspace": "/tmp/w"}),
        Err("Local workspace path must be relative to the agent base directory."),
    );
    check(
        json!({"artifacts": "a/../../b"}),
        Err("Local artifacts path must remain within the agent base directory."),
    );
}

#[test]
fn a_link_out_of_the_base_is_refused_when_the_directory_is_created() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let base = root.path().join("base");
    fs::create_dir(&base).expect("the base is new");
    std::os::unix::fs::symlink(root.path(), base.join("workspace")).expect("the link is new");
    let dirs = AgentDirs::of(&base, &json!({})).expect("the words are fine");
    assert_eq!(
        dirs.create(&base).expect_err("the link is not").to_string(),
        "Local workspace path must remain within the agent base directory."
    );
}
