use serde_json::{Value, json};
use streams::outcome::Status;

use super::{end_line, failure_code, status_line};
use crate::exit::Exit;

#[track_caller]
fn check(answer: Value, expected: Exit, line: &str) {
    let status: Status = answer["status"].as_str().expect("a status").parse().expect("a known one");
    assert_eq!(Exit::of_job(status, failure_code(&answer)), expected, "{answer}");
    assert_eq!(end_line("j", status, &answer), line);
}

#[test]
fn the_end_of_a_job_is_read_from_its_status() {
    check(
        json!({"status": "completed", "error_details": null}),
        Exit::Done,
        "job 'j' ended: completed",
    );
    check(
        json!({"status": "error", "error_details": {"message": "Job exited with code 1",
               "code": "timeout", "error": "the limit of 5 s struck"}}),
        Exit::TimedOut,
        "job 'j' ended: error, timeout: the limit of 5 s struck",
    );
    check(
        json!({"status": "error", "status_details": {"code": "agent_failed"},
               "error_details": {"message": "Job exited with code 1"}}),
        Exit::AgentFailed,
        "job 'j' ended: error, agent_failed: Job exited with code 1",
    );
    check(
        json!({"status": "error", "error_details": {"code": "a code of tomorrow"}}),
        Exit::PlatformFailed,
        "job 'j' ended: error",
    );
    check(json!({"status": "cancelled"}), Exit::Cancelled, "job 'j' ended: cancelled");
}

#[test]
fn status_lines_say_what_is_known() {
    let answer = json!({"status": "active", "status_details": {"message": "Job is running"}});
    assert_eq!(status_line(&answer), "active: Job is running");
    assert_eq!(status_line(&json!({"status": "created"})), "created");
}
