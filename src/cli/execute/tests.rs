use clap::Parser as _;
use serde_json::{Value, json};

use super::Execute;
use crate::cli::Usage;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    execute: Execute,
}

fn body(words: &[&str]) -> anyhow::Result<Value> {
    let line = Line::try_parse_from(std::iter::once(&"execute").chain(words))?;
    line.execute.body()
}

#[track_caller]
fn check(words: &[&str], expected: Value) {
    assert_eq!(body(words).expect("it is valid"), expected);
}

#[test]
fn flags_win_over_json_and_json_over_the_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("spec.yaml");
    let text = "agent: from-file\ninput: from-file\nworkdir:\n  base_workdir: a\n  artifact_mounts: []\n\
                context: {since: now, deep: {x: 1, y: 1}}\n";
    std::fs::write(&file, text).expect("a file");
    check(
        &[
            "--spec-file",
            file.to_str().expect("a path"),
            "--spec",
            r#"{"input": "from-json", "timeout_seconds": 1, "context": {"deep": {"y": 2}}}"#,
            "--timeout-seconds",
            "2.5",
            "--workdir.base-workdir",
            "b",
        ],
        json!({"spec": {
            "agent": "from-file", "input": "from-json", "timeout_seconds": 2.5,
            "workdir": {"base_workdir": "b", "artifact_mounts": []},
            "context": {"since": "now", "deep": {"x": 1, "y": 2}},
        }}),
    );
}

#[test]
fn every_flag_sets_its_field_and_only_what_was_given_is_sent() {
    check(
        &[
            "--agent=a",
            "--input=- what -",
            "--environment=e",
            "--workdir.base-workdir=w",
            "--timeout-seconds=5",
            "--auto-telemetry",
            "--image=i",
            "--post-run-action.kind=k",
            "--max-attempts=2",
            "--max-turns=3",
            "--idle-timeout-seconds=4",
            "--queue-timeout-seconds=-1",
            "--max-cost-usd=0.5",
        ],
        json!({"spec": {
            "agent": "a", "input": "- what -", "environment": "e",
            "workdir": {"base_workdir": "w"}, "timeout_seconds": 5.0, "auto_telemetry": true,
            "image": "i", "post_run_action": {"kind": "k"}, "max_attempts": 2, "max_turns": 3,
            "idle_timeout_seconds": 4.0, "queue_timeout_seconds": -1.0, "max_cost_usd": 0.5,
        }}),
    );
    check(&["--extension.kind=k"], json!({"spec": {"extension": {"kind": "k"}}}));
    check(
        &["--agent=a", "--name=n", "--description=d", "--profile=p"],
        json!({"name": "n", "description": "d", "profile": "p", "spec": {"agent": "a"}}),
    );
}

#[test]
fn the_last_of_a_switch_and_its_opposite_counts() {
    let check =
        |words: &[&str], expected| check(words, json!({"spec": {"auto_telemetry": expected}}));
    check(&["--no-auto-telemetry"], false);
    check(&["--auto-telemetry", "--no-auto-telemetry"], false);
    check(&["--no-auto-telemetry", "--auto-telemetry"], true);
}

#[test]
fn a_flag_takes_the_place_of_an_inline_agent() {
    check(
        &["--spec", r#"{"agent": {"config": {}}}"#, "--agent", "a"],
        json!({"spec": {"agent": "a"}}),
    );
}

#[test]
fn the_input_may_begin_with_a_dash_and_come_from_a_file_as_it_is() {
    check(&["--input", "-5 plus 3"], json!({"spec": {"input": "-5 plus 3"}}));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("prompt");
    std::fs::write(&file, "one\ntwo\n").expect("a file");
    let file = file.to_str().expect("a path");
    check(&["--input-file", file], json!({"spec": {"input": "one\ntwo\n"}}));
    assert!(body(&["--input", "x", "--input-file", file]).is_err(), "both");
    let error = body(&["--spec-file", "-", "--input-file", "-"]).expect_err("both are stdin");
    assert!(error.is::<Usage>(), "{error}");
}

#[test]
fn what_is_wrong_is_a_wrong_command_line() {
    for spec in ["[]", "{", "7"] {
        let error = body(&["--spec", spec]).expect_err("it is no object");
        assert!(error.is::<Usage>(), "{error}");
    }
    assert!(body(&[]).expect_err("it is empty").is::<Usage>());
    for words in [["--timeout-seconds", "inf"], ["--timeout-seconds", "x"], ["--max-turns", "1.5"]]
    {
        assert!(body(&words).expect_err("no such number").is::<clap::Error>(), "{words:?}");
    }
}
