use serde_json::json;

use super::{cell, pairs};

#[test]
fn control_characters_do_not_reach_the_terminal() {
    assert_eq!(cell(Some(&json!("a\u{1b}[31mb\nc"))), "a [31mb c");
}

#[test]
fn what_is_empty_is_left_out() {
    let text = pairs(&json!({"name": "n", "project": null, "spec": {}, "slots": 0}));
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(lines, [["name", "n"], ["slots", "0"]]);
}
