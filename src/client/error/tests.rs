use reqwest::StatusCode;

use super::Error;

/// What a person reads of an answer: the error, then the advice.
#[track_caller]
fn check(status: StatusCode, body: &str, expected: &[&str]) {
    let error = Error::answered(status, body, "GET http://h/x".to_owned());
    let mut lines: Vec<_> = error.to_string().lines().map(str::to_owned).collect();
    lines.extend(error.advice());
    assert_eq!(lines, expected);
}

#[test]
fn the_servers_words_are_read_from_every_form() {
    let bad = StatusCode::BAD_REQUEST;
    let request = "Request: GET http://h/x";
    check(bad, r#"{"detail":"'x' is bad"}"#, &["Bad request: (400) 'x' is bad", request]);
    check(bad, r#"{"detail":{"a":1}}"#, &[r#"Bad request: (400) {"a":1}"#, request]);
    check(bad, r#"{"error":"E","message":"no key"}"#, &["Bad request: (400) no key", request]);
    check(bad, "<html>", &["Bad request: (400) <html>", request]);
    check(bad, "", &["Bad request: (400) Bad Request", request]);
}

#[test]
fn a_validation_list_is_a_line_an_entry() {
    let entry = r#"{"loc":["body","spec","agent"],"msg":"Value error, Agent ref 'x y' is bad"}"#;
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    check(
        status,
        &format!(r#"{{"detail":[{entry}]}}"#),
        &["Invalid input: (422) spec.agent: Agent ref 'x y' is bad", "Request: GET http://h/x"],
    );
    check(
        status,
        &format!(r#"{{"detail":[{entry},{{"loc":["body"],"msg":"Field required"}}]}}"#),
        &[
            "Invalid input: (422) 2 things are wrong:",
            "  spec.agent: Agent ref 'x y' is bad",
            "  Field required",
            "Request: GET http://h/x",
        ],
    );
}

#[test]
fn what_can_be_mended_comes_with_a_hint() {
    check(
        StatusCode::BAD_GATEWAY,
        "",
        &[
            "Server error: (502) Bad Gateway",
            "Request: GET http://h/x",
            "Hint: the server's log says why; `errand doctor` checks what it needs",
        ],
    );
}
