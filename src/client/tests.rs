use reqwest::StatusCode;

use super::{detail, segments};

#[track_caller]
fn check(body: &str, expected: &str) {
    assert_eq!(detail(body, StatusCode::BAD_REQUEST), expected);
}

#[test]
fn the_servers_words_are_read_from_every_form() {
    check(r#"{"detail":"Job 'x' not found"}"#, "Job 'x' not found");
    check(
        r#"{"detail":[{"loc":["body","spec","agent"],"msg":"Value error, Agent ref 'x y' is bad"},
                      {"loc":["body"],"msg":"Field required"}]}"#,
        "spec.agent: Agent ref 'x y' is bad; Field required",
    );
    check(r#"{"detail":{"status":"not_ready"}}"#, r#"{"status":"not_ready"}"#);
    check("<html>", "<html>");
    check("", "Bad Request");
}

#[test]
fn paths_are_escaped_by_segment() {
    assert_eq!(segments("a b/c#d/é.txt"), "a%20b/c%23d/%C3%A9.txt");
}
