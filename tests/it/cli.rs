//! The command line: what `jobs watch` streams, and the exit codes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Platform;

#[tokio::test]
async fn watch_streams_lines_while_the_agent_runs_and_exits_0() {
    let platform = Platform::start().await;
    let job = platform.api().script("echo first; sleep 3; echo last", json!({})).await;
    let mut watch = platform
        .cli()
        .args(["jobs", "watch", &job.name])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("errand runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("stdout is piped")).lines();
    let mut next_with = |word: &str| {
        let mut lines = lines.by_ref().map(|line| line.expect("stdout can be read"));
        assert!(lines.any(|line| line.contains(word)), "no line with '{word}'");
        Instant::now()
    };
    let first = next_with("first");
    assert_eq!(job.status().await, "active", "the line came while the agent runs");
    let last = next_with("last");
    assert!(last - first > Duration::from_secs(2), "the lines came apart");
    assert_eq!(watch.wait().expect("errand ends").code(), Some(0));
}

#[tokio::test]
async fn watch_exits_10_for_a_failing_agent() {
    let platform = Platform::start().await;
    let job = platform.api().script("exit 3", json!({})).await;
    let watch = platform.cli().args(["jobs", "watch", &job.name]).output().expect("errand runs");
    assert_eq!(watch.status.code(), Some(10), "{watch:?}");
}

#[tokio::test]
async fn watch_exits_11_for_a_timeout_that_ends_within_4_seconds_of_submission() {
    let platform = Platform::start().await;
    let submitted = Instant::now();
    let job = platform.api().script("sleep 600", json!({"timeout_seconds": 2})).await;
    let watch = platform.cli().args(["jobs", "watch", &job.name]).output().expect("errand runs");
    let took = submitted.elapsed();
    assert_eq!(watch.status.code(), Some(11), "{watch:?}");
    assert!(took < Duration::from_secs(4), "terminal only after {took:?}");
}

#[tokio::test]
async fn watch_exits_12_for_a_cancel_and_4_for_a_job_that_is_not_there() {
    let platform = Platform::start().await;
    let job = platform.api().script("sleep 600", json!({})).await;
    job.reaches("active", Duration::from_secs(10)).await;
    job.cancel().await;
    let watch = platform.cli().args(["jobs", "watch", &job.name]).output().expect("errand runs");
    assert_eq!(watch.status.code(), Some(12), "{watch:?}");
    let watch = platform.cli().args(["jobs", "watch", "nobody"]).output().expect("errand runs");
    assert_eq!(watch.status.code(), Some(4), "{watch:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_exit_code_5() {
    let list = std::process::Command::new(env!("CARGO_BIN_EXE_errand"))
        .args(["--base-url", "http://127.0.0.1:9", "jobs", "list"])
        .output()
        .expect("errand runs");
    assert_eq!(list.status.code(), Some(5), "{list:?}");
    assert!(list.stdout.is_empty());
}

/// The whole path of a user: register an agent with its files, execute, wait, download.
#[tokio::test]
async fn an_agent_is_registered_executed_and_its_result_downloaded() {
    let platform = Platform::start().await;
    let dir = platform.scratch();
    let agent = "config_format: nemo-agents-spec-v1\nname: greeter\ndefault_harness: script\n\
                 harnesses:\n  script:\n    kind: script\n    settings: {command: [/bin/sh, agent.sh]}\n";
    std::fs::write(dir.join("agent.yaml"), agent).expect("write");
    std::fs::write(dir.join("agent.sh"), "read name; echo \"hello $name\"").expect("write");
    let run = |args: &[&str]| {
        let output = platform.cli().args(args).current_dir(&dir).output().expect("errand runs");
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    };
    run(&["agents", "register", "--name", "greeter", "--agent-config", "agent.yaml"]);
    let job = run(&["agents", "execute", "--agent", "greeter", "--input", "world", "--wait"]);
    let job: serde_json::Value = serde_json::from_slice(&job).expect("exactly one JSON document");
    let name = job["name"].as_str().expect("the job has a name");
    run(&["jobs", "results", "download", "fabric_run_result", "--job", name, "-o", "out.json"]);
    let saved = std::fs::read(dir.join("out.json")).expect("the file is there");
    let saved: serde_json::Value = serde_json::from_slice(&saved).expect("it is JSON");
    assert_eq!(saved["response"], "hello world");
}
