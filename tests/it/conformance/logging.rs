//! A7: what the log says about a run, and which of the agent's words it holds.
//!
//! Unlike the reference, ours writes the agent's stderr (and stdout) to the log line by line while
//! it runs, whatever the end. What a failed agent left in files `stderr.txt` is added at the end.

use serde_json::{Value, json};

use super::adapter::{Adapter, returns};
use super::{SOON, spec};
use crate::harness::Platform;

/// The log of a job, once it has ended.
async fn log_of(platform: &Platform, spec: Value) -> Vec<String> {
    let job = platform.api().submit(spec).await;
    job.ends(SOON).await;
    job.log().await
}

/// The log of an agent that leaves a file `stderr.txt` made by `make`, in its artifacts, and fails.
async fn log_with_left(make: &str) -> Vec<String> {
    let platform = Platform::start().await;
    let script = format!("mkdir $FABRIC_ARTIFACTS/run; cd $FABRIC_ARTIFACTS/run; {make}; exit 3");
    log_of(&platform, spec(&script)).await
}

fn has(log: &[String], text: &str) -> bool {
    log.iter().any(|line| line.contains(text))
}

fn position(log: &[String], text: &str) -> usize {
    let found = log.iter().position(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no '{text}' in {log:#?}"))
}

#[tokio::test]
async fn run_failed_fabric_result_reports_the_reason_in_the_log() {
    let platform = Platform::start().await;
    let job = platform.api().submit(spec("echo 'no such model' >&2; exit 3")).await;
    job.ends(SOON).await;
    let result = job.json("fabric_run_result").await;
    let id = |name: &str| result[name].as_str().expect("an id").to_owned();
    let reason = format!(
        "Agent default/calc failed: fabric_status=failed error=agent_failed: exited with code 3: \
         no such model (runtime_id={} invocation_id={}).",
        id("runtime_id"),
        id("invocation_id"),
    );
    let log = job.log().await;
    assert_eq!(log.last(), Some(&reason), "{log:#?}");
}

#[tokio::test]
async fn run_logs_the_agent_stderr_when_the_run_fails() {
    let platform = Platform::start().await;
    let log = log_of(&platform, spec("echo trouble >&2; exit 3")).await;
    assert!(log.contains(&"[stderr] trouble".to_owned()), "{log:#?}");
    // Also what a program of the agent's has kept in a file of its own.
    let left = log_with_left("echo deep trouble > stderr.txt").await;
    let header = position(&left, "Agent stderr (run/stderr.txt):");
    assert_eq!(left[header + 1], "[stderr] deep trouble");
}

/// Fabric keeps a copy of the adapter's stderr in the artifacts; the log has it once.
#[tokio::test]
async fn run_logs_the_stderr_of_an_adapter_once() {
    let failed =
        json!({"status": "failed", "output": {}, "error": {"code": "no_model", "message": "none"}});
    let adapter = Adapter::start(&format!("echo trouble >&2; {}", returns(&failed))).await;
    let job = adapter.platform.api().submit(adapter.spec()).await;
    job.ends(SOON).await;
    let log = job.log().await;
    assert_eq!(log.iter().filter(|line| line.contains("trouble")).count(), 1, "{log:#?}");
    assert!(
        has(&log, "failed: fabric_status=failed error=no_model: none (runtime_id="),
        "{log:#?}"
    );
}

#[tokio::test]
async fn run_logs_the_agent_stderr_when_fabric_raises() {
    let platform = Platform::start().await;
    let script = "echo deep trouble > $FABRIC_ARTIFACTS/stderr.txt; echo trouble >&2; sleep 600";
    let mut spec = spec(script);
    spec["timeout_seconds"] = json!(5);
    let log = log_of(&platform, spec).await;
    assert!(has(&log, "[stderr] trouble"), "{log:#?}");
    assert!(has(&log, "[stderr] deep trouble"), "{log:#?}");
}

/// Its files are not; its stream is, as it comes.
#[tokio::test]
async fn run_does_not_log_agent_stderr_on_success() {
    let platform = Platform::start().await;
    let script = "echo deep > $FABRIC_ARTIFACTS/stderr.txt; echo live >&2; echo done";
    let log = log_of(&platform, spec(script)).await;
    assert!(!has(&log, "deep") && !has(&log, "Agent stderr"), "{log:#?}");
    assert!(has(&log, "[stderr] live"), "{log:#?}");
}

#[tokio::test]
async fn run_ignores_the_agent_stdout_file() {
    let log = log_with_left("echo secret words > stdout.txt").await;
    assert!(!has(&log, "secret words"), "{log:#?}");
}

#[tokio::test]
async fn run_logs_the_whole_agent_stderr_for_realistic_output() {
    let platform = Platform::start().await;
    let job = platform.api().submit(spec("seq -f 'line %.0f' 1 5000 >&2; exit 1")).await;
    job.ends(SOON).await;
    let lines: Vec<_> =
        job.log().await.into_iter().filter(|line| line.starts_with("[stderr] ")).collect();
    let whole: Vec<_> = (1..=5000).map(|n| format!("[stderr] line {n}")).collect();
    assert!(lines == whole, "{} lines", lines.len());
}

#[tokio::test]
async fn run_tolerates_a_failure_with_no_agent_stderr() {
    let platform = Platform::start().await;
    let log = log_of(&platform, spec("exit 3")).await;
    assert!(has(&log, "Agent default/calc failed: "), "{log:#?}");
    assert!(!has(&log, "stderr"), "{log:#?}");
}

#[tokio::test]
async fn log_agent_stderr_reports_an_empty_stream() {
    let log = log_with_left(": > stderr.txt").await;
    position(&log, "Agent stderr at run/stderr.txt was empty.");
}

#[tokio::test]
async fn log_agent_stderr_survives_a_missing_artifacts_directory() {
    let log = log_with_left("rm -r $FABRIC_ARTIFACTS").await;
    assert!(has(&log, "Fabric invocation failed for agent default/calc"), "{log:#?}");
    assert!(!has(&log, "agent stderr"), "{log:#?}");
}

#[tokio::test]
async fn run_logs_progress_through_a_successful_run() {
    let platform = Platform::start().await;
    let log = log_of(&platform, spec("echo 96")).await;
    assert_eq!(log[0], "Executing agent default/calc (timeout 300s).");
    assert_eq!(log[1], "Invoking agent default/calc.");
    assert_eq!(log[2], "96");
    assert!(log[3].starts_with("Agent default/calc returned status=succeeded after "), "{log:#?}");
}

#[tokio::test]
async fn run_names_the_agent_before_validating_its_config() {
    let platform = Platform::start().await;
    let mut spec = spec("echo never");
    spec["agent"]["config"]["harnesses"]["script"]["kind"] = json!("no-such-harness");
    let log = log_of(&platform, spec).await;
    assert_eq!(log[0], "Executing agent default/calc (timeout 300s).");
    position(&log, "Unsupported harness kind 'no-such-harness'.");
}

/// Ours does not announce it at all: it is a step of its own, and shown as the job's phase.
#[tokio::test]
async fn run_does_not_announce_workdir_staging_when_there_is_none() {
    let platform = Platform::start().await;
    let log = log_of(&platform, spec("echo 96")).await;
    assert!(!has(&log, "Staging"), "{log:#?}");
}

#[tokio::test]
async fn run_logs_elapsed_time_when_fabric_raises() {
    let adapter = Adapter::start("kill -9 $$").await;
    let job = adapter.platform.api().submit(adapter.spec()).await;
    job.ends(SOON).await;
    let log = job.log().await;
    let line = &log[position(&log, "Fabric invocation failed for agent default/calc after ")];
    assert!(line.contains("s: Fabric runtime invocation failed: "), "{line}");
}

/// Ours takes less of each file than the reference.
const KEPT: usize = 1024 * 1024;

#[tokio::test]
async fn log_agent_stderr_tails_a_stream_over_the_cap() {
    let log = log_with_left("seq -f %0200.0f 1 10000 > stderr.txt").await;
    let lines = KEPT / 201;
    let header = position(&log, "earlier bytes omitted");
    let (kept, size) = (lines * 201, 10_000 * 201);
    let said =
        format!("(run/stderr.txt, last {kept} bytes; {} earlier bytes omitted):", size - kept);
    assert!(log[header].ends_with(&said), "{} is not {said}", log[header]);
    let last: Vec<_> = (10_001 - lines..=10_000).map(|n| format!("[stderr] {n:0200}")).collect();
    assert!(log[header + 1..].starts_with(&last), "every line to the end is there");
}

#[tokio::test]
async fn log_agent_stderr_caps_the_number_of_files() {
    let log =
        log_with_left("for n in 1 2 3 4 5 6 7; do mkdir $n; echo words $n > $n/stderr.txt; done")
            .await;
    position(&log, "Found 7 agent stderr files; the first 5 follow.");
    let words: Vec<_> = log.iter().filter(|line| line.contains("words")).collect();
    assert_eq!(words, ["1", "2", "3", "4", "5"].map(|n| format!("[stderr] words {n}")).each_ref());
}

#[tokio::test]
async fn log_agent_stderr_does_not_flag_truncation_when_it_fits() {
    let make = format!("seq -f %01023.0f 1 {} > stderr.txt", KEPT / 1024);
    let log = log_with_left(&make).await;
    position(&log, "Agent stderr (run/stderr.txt):");
    assert!(!has(&log, "omitted"), "{log:#?}");
}

#[tokio::test]
async fn log_agent_stderr_reports_byte_counts_not_character_counts() {
    // Two bytes a letter.
    let line = "é".repeat(500);
    let log = log_with_left(&format!("yes {line} | head -n 1100 > stderr.txt")).await;
    let kept = KEPT / 1001 * 1001;
    let said = format!("last {kept} bytes; {} earlier bytes omitted", 1100 * 1001 - kept);
    position(&log, &said);
}

#[tokio::test]
async fn log_agent_stderr_rejects_a_fifo_without_blocking() {
    let log = log_with_left("mkfifo stderr.txt").await;
    position(&log, "Could not read agent stderr at run/stderr.txt: it is not a regular file.");
}

#[tokio::test]
async fn log_agent_stderr_refuses_to_follow_a_symlink() {
    let log = log_with_left("ln -s /etc/passwd stderr.txt").await;
    position(&log, "Could not read agent stderr at run/stderr.txt");
    assert!(!has(&log, "root:"), "{log:#?}");
}
