//! How commands end: the exit codes that scripts rely on, and what is said on the way out.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{fails, run, text};
use crate::harness::{Platform, best_of_three};

#[tokio::test]
async fn case_w1_each_end_of_a_watch_has_its_exit_code() {
    let platform = Platform::start().await;
    let api = platform.api();
    let completed = api.script("exit 0", json!({})).await;
    let failed = api.script("exit 3", json!({})).await;
    let timed_out = api.script("sleep 600", json!({"timeout_seconds": 1})).await;
    // The platform cannot save the working directory of an agent that put a link in its place.
    let unsaved = "cd ..; rm -rf workspace; ln -s /nowhere workspace; echo done";
    let unsaved = api.script(unsaved, json!({})).await;
    let running = api.script("sleep 600", json!({})).await;
    for (job, code) in [(&completed, 0), (&failed, 10), (&timed_out, 11), (&unsaved, 13)] {
        let watch = run(&platform, &["jobs", "watch", &job.name]);
        assert_eq!(watch.status.code(), Some(code), "{watch:?}");
    }

    let (code, said) = interrupted(&platform, &["jobs", "watch", &running.name]);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("last known status: active"), "{said}");
    assert_eq!(running.status().await, "active", "the job goes on");

    running.cancel().await;
    assert_eq!(run(&platform, &["jobs", "watch", &running.name]).status.code(), Some(12));

    let said = fails(&platform, &["jobs", "watch", "nobody"], 4);
    assert!(said.contains("Not found: (404) Job 'nobody' not found in workspace"), "{said}");
    let down = ["--base-url", "http://127.0.0.1:9", "jobs", "watch", &completed.name];
    let said = fails(&platform, &down, 5);
    assert!(said.contains("Request: GET http://127.0.0.1:9/apis/jobs/v2/"), "{said}");
    assert!(said.contains("Hint: start the platform with `errand up`"), "{said}");
}

/// Runs a watch, interrupts it once the job is active, and gives its exit code and words.
fn interrupted(platform: &Platform, args: &[&str]) -> (Option<i32>, String) {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut watch = platform.cli();
    watch.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut watch = watch.spawn().expect("errand runs");
    let mut stderr = BufReader::new(watch.stderr.take().expect("it is piped"));
    let mut said = String::new();
    while !said.contains("active") {
        assert!(stderr.read_line(&mut said).expect("stderr can be read") > 0, "{said}");
    }
    kill_process(Pid::from_child(&watch), Signal::INT).expect("it can be interrupted");
    stderr.read_to_string(&mut said).expect("stderr can be read");
    (watch.wait().expect("it ends").code(), said)
}

#[tokio::test]
async fn execute_with_wait_ends_as_the_job_does_and_prints_its_record() {
    let platform = Platform::start().await;
    let spec = |command: &str| {
        let mut agent = crate::harness::script_agent();
        agent["config"]["harnesses"]["script"]["settings"]["command"] =
            json!(["/bin/sh", "-c", command]);
        json!({"agent": agent, "input": ""}).to_string()
    };
    for (command, code, status) in [("exit 0", 0, "completed"), ("exit 1", 10, "error")] {
        let execute = ["agents", "execute", "--spec", &spec(command), "--wait"];
        let output = run(&platform, &execute);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let record: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("exactly one JSON document");
        assert_eq!(record["status"], status, "{record}");
    }
    let slow = ["agents", "execute", "--spec", &spec("sleep 600"), "--name", "slow", "--wait"];
    let (code, said) = interrupted(&platform, &slow);
    assert_eq!(code, Some(130), "{said}");
    let status = super::json(&platform, &["jobs", "get-status", "slow"]);
    assert_eq!(status["status"], "active", "{status}");
}

#[tokio::test]
async fn watch_exits_11_for_a_timeout_that_ends_within_4_seconds_of_submission() {
    let platform = Platform::start().await;
    let ends = async || {
        let submitted = Instant::now();
        let job = platform.api().script("sleep 600", json!({"timeout_seconds": 2})).await;
        let watch = run(&platform, &["jobs", "watch", &job.name]);
        let took = submitted.elapsed();
        assert_eq!(watch.status.code(), Some(11), "{watch:?}");
        took
    };
    best_of_three(Duration::from_secs(4), ends).await;
}

#[tokio::test]
async fn a_refused_request_says_all_that_is_wrong_line_by_line() {
    let platform = Platform::start().await;
    let spec = r#"{"agent": "x y", "timeout_seconds": 0, "nonsense": 1}"#;
    let said = fails(&platform, &["agents", "execute", "--spec", spec], 3);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "errand: Invalid input: (422) 3 things are wrong:", "{said}");
    assert_eq!(
        lines[1],
        "  spec.agent: Agent ref 'x y' must be an entity name or a 'workspace/name' ref."
    );
    assert_eq!(lines[2], "  spec.timeout_seconds: Input should be greater than 0");
    assert_eq!(lines[3], "  spec.nonsense: Extra inputs are not permitted");
    assert!(lines[4].starts_with("Request: POST http://127.0.0.1:"), "{said}");
    assert!(lines[4].ends_with("/apis/agents/v2/workspaces/default/jobs/execute"), "{said}");

    let said = fails(&platform, &["agents", "execute", "--agent", "nobody"], 3);
    assert!(said.contains("Agent 'nobody' not found."), "{said}");
    fails(&platform, &["agents", "execute"], 2);
    fails(&platform, &["agents", "execute", "--spec", "{"], 2);
    let said = fails(&platform, &["jobs", "list", "--filter", "{"], 2);
    assert!(said.contains("Invalid filter JSON: "), "{said}");
    fails(&platform, &["jobs", "lost"], 2);
}

#[test]
fn a_completion_script_is_printed_for_each_shell_and_without_a_server() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(env!("CARGO_BIN_EXE_errand"))
            .args(["completions", shell])
            .env("ERRAND_CONFIG", "/nowhere/at/all")
            .output()
            .expect("errand runs");
        assert!(output.status.success(), "{shell}: {output:?}");
        assert!(text(output.stdout).contains("post-run-actions"), "{shell}");
    }
}
