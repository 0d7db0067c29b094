//! What the documentation walks a user through, command by command.

use serde_json::json;

use super::{each, json as ask, register_greeter, run};
use crate::harness::Platform;

/// The whole path of a user: register an agent with its files, execute, wait, download.
#[tokio::test]
async fn an_agent_is_registered_executed_and_its_result_downloaded() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let execute = ["agents", "execute", "--agent", "greeter", "--input", "world", "--wait"];
    let job = ask(&platform, &execute);
    let name = job["name"].as_str().expect("the job has a name");
    let download = ["jobs", "results", "download", "fabric_run_result", "--job", name];
    ask(&platform, &[&download[..], &["-o", "out.json"]].concat());
    let saved = std::fs::read(platform.scratch().join("out.json")).expect("the file is there");
    let saved: serde_json::Value = serde_json::from_slice(&saved).expect("it is JSON");
    assert_eq!(saved["response"], "hello world");
}

#[tokio::test]
async fn flags_win_over_a_spec_file_and_the_whole_record_is_printed() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let spec = "agent: greeter\ninput: file\ntimeout_seconds: 10\nauto_telemetry: false\n";
    std::fs::write(platform.scratch().join("spec.yaml"), spec).expect("a file");
    std::fs::write(platform.scratch().join("prompt.txt"), "prompt").expect("a file");
    let execute = ["agents", "execute", "--spec-file", "spec.yaml"];
    let more = ["--spec", r#"{"timeout_seconds": 20}"#, "--input", "flag", "--name", "run-1"];
    let record = ask(&platform, &[&execute[..], &more, &["--description", "d"]].concat());
    assert_eq!((&record["name"], &record["description"]), (&json!("run-1"), &json!("d")));
    assert!(record["id"].as_str().is_some_and(|id| id.starts_with("platform-job-")), "{record}");
    assert_eq!(record["spec"]["agent_ref"], "default/greeter", "{record}");
    let request = &record["spec"]["request"];
    assert_eq!((&request["input"], &request["timeout_seconds"]), (&json!("flag"), &json!(20.0)));
    assert_eq!(request["auto_telemetry"], false, "{request}");
    let record = ask(&platform, &[&execute[..], &["--input-file", "prompt.txt"]].concat());
    assert_eq!(record["spec"]["request"]["input"], "prompt", "{record}");
}

#[tokio::test]
async fn an_agents_runs_are_listed_across_workspaces() {
    let platform = Platform::start().await;
    ask(&platform, &["workspaces", "create", "research"]);
    for (workspace, agent) in [("default", "calc"), ("research", "calc"), ("default", "other")] {
        register_greeter(&platform, workspace, agent);
    }
    let execute = |workspace: &str, agent: &str, name: &str| {
        let args = ["agents", "execute", "-w", workspace, "--agent", agent, "--name", name];
        ask(&platform, &[&args[..], &["--input", "x"]].concat());
    };
    execute("default", "calc", "one");
    execute("default", "research/calc", "two");
    execute("default", "other", "three");
    execute("research", "calc", "four");
    let filter = r#"{"spec.agent_ref": {"$in": ["default/calc", "research/calc"]}}"#;
    let source = ["--filter.source", "nemo-agents-plugin-execute", "--filter", filter];
    let names = |workspace: &str| {
        let list = ["jobs", "list", "-w", workspace, "--sort", "created_at"];
        each(&ask(&platform, &[&list[..], &source].concat()), "name")
    };
    assert_eq!(names("default"), ["one", "two"]);
    assert_eq!(names("research"), ["four"]);
    assert_eq!(names("-"), ["one", "two", "four"]);
}

#[tokio::test]
async fn a_jobs_output_is_the_base_of_the_next_one() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let first = ask(
        &platform,
        &["agents", "execute", "--agent", "greeter", "--input", "one", "--name", "first", "--wait"],
    );
    let attempt = first["attempt_id"].as_str().expect("the record names its attempt");
    let base = format!("job-fileset-first#results/{attempt}/output_workdir");
    let mut agent = crate::harness::script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", "cat said.txt data/extra.txt"]);

    // An inline agent, and an artifact laid over the base, in a file; the base by a flag.
    std::fs::write(platform.scratch().join("extra.txt"), "and more").expect("a file");
    ask(&platform, &["files", "upload", "extra.txt", "extras"]);
    let mounts = json!([{"ref": "extras#extra.txt", "mount_path": "data/extra.txt"}]);
    let spec = json!({"workdir": {"artifact_mounts": mounts}}).to_string();
    std::fs::write(platform.scratch().join("mounts.json"), spec).expect("a file");
    let inline = json!({"agent": agent, "input": ""}).to_string();
    let execute = ["agents", "execute", "--spec-file", "mounts.json", "--spec", &inline];
    let more = ["--workdir.base-workdir", &base, "--name", "second", "--wait"];
    let second = ask(&platform, &[&execute[..], &more].concat());
    assert_eq!(second["status"], "completed", "{second}");
    let download = ["jobs", "results", "download", "fabric_run_result", "--job", "second"];
    assert!(run(&platform, &download).status.success());
    let saved = std::fs::read(platform.scratch().join("fabric_run_result")).expect("it is there");
    let saved: serde_json::Value = serde_json::from_slice(&saved).expect("it is JSON");
    assert_eq!(saved["response"], "hello one\nand more");
}
