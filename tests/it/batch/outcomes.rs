//! What `batch run` makes of the ends of jobs: exit codes, the index, and jobs that are run once
//! more.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{index, register, specs, word};
use crate::cli::{fails, json as printed, run, text};
use crate::harness::{Platform, eventually, send};

const SOON: Duration = Duration::from_secs(60);

fn line(agent: &str, name: &str, more: Value) -> Value {
    let mut spec = json!({"agent": agent, "input": format!("{name}\n")});
    for (key, value) in more.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    json!({"name": name, "spec": spec})
}

#[tokio::test]
async fn a_batch_exits_by_its_worst_line_and_its_index_says_what_became_of_each() {
    let platform = Platform::start().await;
    register(&platform, "quick", "read name; [ $name != second ] || exit 3; echo $name").await;
    let lines = [
        line("quick", "first", json!({})),
        line("quick", "second", json!({})),
        line("quick", "third", json!({"timeout_seconds": 0})),
        line("quick", "fourth", json!({})),
    ];
    let file = specs(&platform, lines);
    let directory = platform.scratch().join("out");
    let words = ["batch", "run", word(&file), "-o", word(&directory), "--group", "mixed"];
    let ended = run(&platform, &words);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let shown: Value = serde_json::from_slice(&ended.stdout).expect("one document");
    let counts = ["group", "lines", "completed", "failed"].map(|key| shown[key].clone());
    assert_eq!(counts, [json!("mixed"), json!(4), json!(2), json!(2)], "{shown}");

    let entries = index(&directory);
    let said: Vec<_> =
        entries.iter().map(|it| (it["line"].as_u64(), it["status"].as_str())).collect();
    let expected = [(1, "completed"), (2, "error"), (3, "refused"), (4, "completed")];
    assert_eq!(said, expected.map(|(line, status)| (Some(line), Some(status))), "{entries:?}");
    assert_eq!(entries[1]["code"], "agent_failed");
    assert_eq!(entries[2]["detail"][0]["loc"], json!(["body", "spec", "timeout_seconds"]));
    let path = "first/output_workdir.tar.gz";
    let of_first = entries[0]["results"].as_array().expect("a list");
    assert!(of_first.iter().any(|it| it["path"] == path), "{of_first:?}");
    assert!(!of_first.iter().any(|it| it["name"] == "input_workdir"), "{of_first:?}");
    assert!(directory.join(path).is_file());
    assert_eq!(run(&platform, &["batch", "watch", "mixed"]).status.code(), Some(3));

    // Without a word about it nobody goes on with a batch.
    let said = fails(&platform, &words, 2);
    assert!(said.contains("has a batch already, 'mixed'. Go on with it by --resume"), "{said}");

    // The line is mended, and one job is run once more; nothing else is.
    let lines = [
        line("quick", "first", json!({})),
        line("quick", "second", json!({})),
        line("quick", "third", json!({})),
        line("quick", "fourth", json!({})),
    ];
    specs(&platform, lines);
    let resumed = run(&platform, &[&words[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(10), "{resumed:?}");
    assert_eq!(index(&directory)[2]["status"], "completed");
    let jobs = printed(&platform, &["jobs", "list"]);
    assert_eq!(jobs["pagination"]["total_results"], 4, "{jobs}");
}

#[tokio::test]
async fn jobs_that_failed_are_run_once_more_where_their_code_is_named() {
    let platform = Platform::start().await;
    let scratch = platform.scratch();
    let script = format!(
        "read name; if [ -e {0}/seen-$name ]; then echo well; else : > {0}/seen-$name; sleep 600; fi",
        scratch.display()
    );
    register(&platform, "flaky", &script).await;
    fs::write(scratch.join("seen-good"), "").expect("a file");
    let limit = json!({"timeout_seconds": 5});
    let lines = [line("flaky", "good", json!({})), line("flaky", "slow", limit)];
    let file = specs(&platform, lines);
    let directory = scratch.join("out");
    let words = ["batch", "run", word(&file), "-o", word(&directory)];
    let ended = run(&platform, &words);
    assert_eq!(ended.status.code(), Some(11), "{ended:?}");
    let group: Value = serde_json::from_slice(&ended.stdout).expect("one document");
    let group = group["group"].as_str().expect("a name").to_owned();

    let others = [&words[..], &["--resume", "--retry-failed", "worker_lost,agent_failed"]].concat();
    assert_eq!(run(&platform, &others).status.code(), Some(11), "another code is left alone");
    let retried = [&words[..], &["--resume", "--retry-failed", "timeout"]].concat();
    let ended = run(&platform, &retried);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let entries = index(&directory);
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert_eq!(entries[1]["runs"], json!(["slow"]), "{entries:?}");
    let again = entries[1]["job"].as_str().expect("a name");
    assert!(directory.join(again).join("output_workdir.tar.gz").is_file());
    let record = printed(&platform, &["jobs", "get", again]);
    assert_eq!(record["rerun_of_name"], "slow", "{record}");
    assert_eq!(record["batch"], json!({"group": group, "line": 2}), "{record}");
    assert_eq!(run(&platform, &["batch", "watch", &group]).status.code(), Some(0));
    assert_eq!(run(&platform, &retried).status.code(), Some(0), "nothing is left to do");
    let said = fails(&platform, &[&words[..], &["--retry-failed", "nonsense"]].concat(), 2);
    assert!(said.contains("nonsense"), "{said}");
}

#[tokio::test]
async fn a_batch_that_is_interrupted_says_how_to_go_on_and_its_jobs_go_on() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done; echo done", go.display());
    register(&platform, "patient", &script).await;
    let file = specs(&platform, ["one", "two"].map(|name| line("patient", name, json!({}))));
    let directory = platform.scratch().join("out");
    let words = ["batch", "run", word(&file), "-o", word(&directory), "--concurrency", "1"];
    let words = [&words[..], &["--retry-failed", "timeout,worker_lost"]].concat();
    let mut command = platform.cli();
    let child = command.args(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("errand runs");
    let active = || async {
        let one = run(&platform, &["jobs", "get-status", "one"]);
        text(one.stdout).contains(r#""status": "active""#).then_some(())
    };
    eventually("the first job is active", SOON, active).await;
    send(child.id(), Signal::INT);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let said = text(ended.stderr);
    let advice = format!(
        "`errand batch run '{}' -o '{}' --resume --concurrency 1 --retry-failed timeout,worker_lost`",
        word(&file),
        word(&directory)
    );
    assert!(said.contains(&advice), "{said}");
    let status = printed(&platform, &["jobs", "get-status", "one"]);
    assert_eq!(status["status"], "active", "{status}");
    // One at a time: the second was not sent yet.
    fails(&platform, &["jobs", "get-status", "two"], 4);

    fs::write(&go, "").expect("a file");
    let resumed = run(&platform, &[&words[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    assert_eq!(index(&directory).len(), 2);
}

#[tokio::test]
async fn what_is_no_batch_is_a_usage_error_or_is_not_found() {
    let platform = Platform::start().await;
    let file = platform.scratch().join("none.jsonl");
    let said = fails(&platform, &["batch", "run", word(&file)], 1);
    assert!(said.contains("cannot read"), "{said}");
    let said = fails(&platform, &["batch", "watch", "nobody"], 4);
    assert!(said.contains("Batch 'nobody' not found in workspace 'default'."), "{said}");
    fails(&platform, &["batch", "get", "nobody"], 4);
    let file = specs(&platform, []);
    let none = run(&platform, &["batch", "run", word(&file)]);
    assert_eq!(none.status.code(), Some(0), "{none:?}");
    let down = ["--base-url", "http://127.0.0.1:9", "batch", "run", word(&file), "--resume"];
    assert_eq!(run(&platform, &down).status.code(), Some(0), "nothing is asked for nothing");
    let file = specs(&platform, [line("quick", "first", json!({}))]);
    fails(
        &platform,
        &["--base-url", "http://127.0.0.1:9", "batch", "run", word(&file), "--resume"],
        5,
    );
}
