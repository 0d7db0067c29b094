use serde_json::{Value, json};

use super::next;

#[track_caller]
fn check(answer: Value, expected: Option<(&str, &str)>) {
    let found = next(&answer, "page");
    assert_eq!(found.as_ref().map(|(key, at)| (*key, at.as_str())), expected, "{answer}");
}

#[test]
fn the_next_page_is_behind_a_cursor_or_has_a_number() {
    check(json!({"pagination": {"page": 1, "total_pages": 3}}), Some(("page", "2")));
    check(json!({"pagination": {"page": 3, "total_pages": 3}}), None);
    check(json!({"pagination": {"page": 7, "total_pages": 3}}), None);
    check(json!({"pagination": {"page": 1, "total_pages": 0}}), None);
    check(json!({"data": []}), None);
    let with_cursor = json!({"page": 1, "total_pages": 3, "next_cursor": "abc"});
    check(json!({"pagination": with_cursor}), Some(("page_cursor", "abc")));
    check(json!({"next_cursor": "abc"}), Some(("page_cursor", "abc")));
}

#[test]
fn the_last_cursor_is_the_end() {
    let answer = json!({"pagination": {"page": 1, "total_pages": 3, "next_cursor": null}});
    assert_eq!(next(&answer, "page_cursor"), None);
}
