//! FC-A: results lost or truncated on failure or timeout.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Platform, best_of_three};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn case_a1_a_timeout_keeps_what_was_written() {
    let platform = Platform::start().await;
    let times_out = async || {
        let submitted = Instant::now();
        let script = "echo half > out.txt; sleep 600";
        let job = platform.api().script(script, json!({"timeout_seconds": 3})).await;
        let record = job.ends(SOON).await;
        let took = submitted.elapsed();
        assert_eq!(record["status"], "error");
        assert_eq!(record["error_details"]["code"], "timeout", "{record}");
        let workdir = job.directory("output_workdir").await;
        assert_eq!(fs::read_to_string(workdir.path().join("out.txt")).expect("kept"), "half\n");
        let error = job.json("fabric_error").await;
        assert_eq!(error["timed_out"], true, "{error}");
        assert_eq!(error["fabric_status"], "timeout");
        assert_eq!(error["message"], "Fabric runtime invocation timed out after 3s.");
        took
    };
    best_of_three(Duration::from_secs(8), times_out).await;
}

#[tokio::test]
async fn case_a2_partial_results_are_kept_and_marked() {
    let platform = Platform::start().await;
    let script = r#"printf '{"rows":[1,2' > report.json; kill -9 $$"#;
    let job = platform.api().script(script, json!({})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error");
    assert_eq!(record["error_details"]["code"], "agent_crashed", "{record}");
    assert!(record["error_details"].to_string().contains("killed by signal 9"), "{record}");
    assert_eq!(job.result("output_workdir").await["complete"], false);
    let workdir = job.directory("output_workdir").await;
    let kept = fs::read_to_string(workdir.path().join("report.json")).expect("kept");
    assert_eq!(kept, r#"{"rows":[1,2"#);
}

#[tokio::test]
async fn case_a5_the_same_results_however_it_fails() {
    let platform = Platform::start().await;
    let api = platform.api();
    let failed = api.script("echo x > f; exit 1", json!({})).await;
    let timed_out = api.script("echo x > f; sleep 600", json!({"timeout_seconds": 2})).await;
    let cancelled = api.script("echo x > f; sleep 600", json!({})).await;
    failed.ends(SOON).await;
    timed_out.ends(SOON).await;
    cancelled.reaches("active", SOON).await;
    cancelled.cancel().await;
    assert_eq!(cancelled.ends(SOON).await["status"], "cancelled");

    let returned = ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"];
    let raised = ["fabric_error", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(failed.result_names().await, returned);
    assert_eq!(timed_out.result_names().await, raised);
    assert_eq!(cancelled.result_names().await, raised);
    let error = cancelled.json("fabric_error").await;
    assert_eq!((&error["code"], &error["fabric_status"]), (&json!("cancelled"), &json!("error")));
    for job in [failed, timed_out, cancelled] {
        assert!(job.directory("output_workdir").await.path().join("f").is_file());
    }
}

#[tokio::test]
async fn case_a6_a_timeout_and_an_empty_answer_are_told_apart() {
    let platform = Platform::start().await;
    let api = platform.api();
    let slow = api.script("sleep 30; exit 0", json!({"timeout_seconds": 2})).await;
    api.fileset("silent", &[("agent.sh", "exit 0")]).await;
    let mut agent = crate::harness::script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["allow_empty"] = json!(false);
    let workdir = json!({"base_workdir": "silent"});
    let silent = api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await;
    assert_eq!(slow.ends(SOON).await["error_details"]["code"], "timeout");
    let record = silent.ends(SOON).await;
    assert_eq!(record["status"], "error");
    assert_eq!(record["error_details"]["code"], "no_result", "{record}");
    assert!(record["error_details"].to_string().contains("agent returned no result"), "{record}");
}

#[tokio::test]
async fn case_a8_an_agent_may_flush_before_the_end_and_has_still_timed_out() {
    let platform = Platform::start().await;
    let script = "trap 'echo flushed > last.txt; exit 0' TERM; while :; do sleep 1; done";
    let job = platform.api().script(script, json!({"timeout_seconds": 2})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error");
    assert_eq!(record["error_details"]["code"], "timeout", "{record}");
    let workdir = job.directory("output_workdir").await;
    assert_eq!(fs::read_to_string(workdir.path().join("last.txt")).expect("flushed"), "flushed\n");
}

#[tokio::test]
async fn case_a12_watch_prints_the_end_of_stderr_before_the_last_status() {
    let platform = Platform::start().await;
    let script = "echo trouble >&2; sleep 99";
    let job = platform.api().script(script, json!({"timeout_seconds": 2})).await;
    // Lines go to stdout and statuses to stderr; in one file they stand in the order in which
    // they were written.
    let both = platform.scratch().join("watched");
    let file = || fs::File::options().create(true).append(true).open(&both).expect("a file");
    let mut watch = platform.cli();
    watch.args(["jobs", "watch", &job.name]).stdout(file()).stderr(file());
    assert_eq!(watch.status().expect("errand runs").code(), Some(11));
    let watched = fs::read_to_string(&both).expect("it was written");
    let at = |word: &str| watched.find(word).unwrap_or_else(|| panic!("no '{word}':\n{watched}"));
    assert!(at("[stderr] trouble") < at("ended: error, timeout"), "{watched}");
    assert!(job.log().await.iter().any(|line| line == "[stderr] trouble"));
}
