use serde_json::json;

use super::{cell, pairs, shortened};

#[test]
fn control_characters_do_not_reach_the_terminal() {
    assert_eq!(cell(Some(&json!("a\u{1b}[31mb\nc"))), "a [31mb c");
}

#[test]
fn what_is_empty_is_left_out() {
    let rows = pairs(&json!({"name": "n", "project": null, "spec": {}, "slots": 0}));
    assert_eq!(rows, [["name", "n"], ["slots", "0"]]);
}

#[test]
fn long_values_are_cut_between_characters() {
    assert_eq!(shortened("äöü", 3), "äöü");
    assert_eq!(shortened("äöü", 2), "äö…");
    assert_eq!(shortened("äöü", usize::MAX), "äöü");
}
