use serde_json::{Value, json};

use super::Execute;

#[track_caller]
fn check(execute: &Execute, expected: Value) {
    assert_eq!(execute.spec().expect("it is valid"), expected);
}

#[test]
fn flags_win_over_json_and_json_over_the_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("spec.yaml");
    let text =
        "agent: from-file\ninput: from-file\nworkdir:\n  base_workdir: a\n  artifact_mounts: []\n";
    std::fs::write(&file, text).expect("a file");
    let execute = Execute {
        spec_file: Some(file),
        spec: Some(r#"{"input": "from-json", "timeout_seconds": 1}"#.to_owned()),
        timeout_seconds: Some(2.5),
        base_workdir: Some("b".to_owned()),
        ..Default::default()
    };
    check(
        &execute,
        json!({
            "agent": "from-file", "input": "from-json", "timeout_seconds": 2.5,
            "workdir": {"base_workdir": "b", "artifact_mounts": []},
        }),
    );
}

#[test]
fn only_what_was_given_is_sent() {
    let execute = Execute {
        agent: Some("a".to_owned()),
        no_auto_telemetry: true,
        post_run_action_kind: Some("agents.noop".to_owned()),
        ..Default::default()
    };
    check(
        &execute,
        json!({"agent": "a", "auto_telemetry": false, "post_run_action": {"kind": "agents.noop"}}),
    );
}

#[test]
fn what_is_no_object_is_a_wrong_command_line() {
    for spec in ["[]", "{", "7"] {
        let execute = Execute { spec: Some(spec.to_owned()), ..Default::default() };
        let error = execute.spec().expect_err("it is no object");
        assert!(error.is::<crate::cli::Usage>(), "{error}");
    }
    assert!(Execute::default().spec().is_err());
}
