//! What it takes to save a large tree and to give it to the next job, beside `tar` and `gzip` on
//! the same tree, and the memory that the platform takes meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Job, Options, Platform, script_agent};
use crate::measure::{Better, Row, Table};

const PATIENCE: Duration = Duration::from_secs(600);

/// How often is looked how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// Times the same thing may take, and a moment for starting a process and telling of its end.
const SAVING: f64 = 1.5;
const RESTORING: f64 = 1.3;
const MOMENT: f64 = 0.3;

/// Memory beyond that of the idle platform.
const MEMORY_MIB: f64 = 96.0;

const TREES: [(&str, &str); 3] = [
    (
        "a file of 2 GiB",
        "head -c 1G /dev/urandom > big; seq 1 200000000 | head -c 1G >> big; rm agent.sh",
    ),
    (
        "100,000 small files",
        "for d in $(seq 100); do mkdir $d; for f in $(seq 1000); do echo $d $f > $d/$f; done; done",
    ),
    ("a sparse file of 5 GiB", "truncate -s 5G big; echo end >> big"),
];

pub(crate) async fn measure(table: &mut Table) {
    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    // What the first job makes the platform allocate is no matter of its tree.
    ended(&platform, &platform.api().script("true", json!({})).await).await;
    for (tree, script) in TREES {
        let memory = Memory::watch(platform.pid());
        let script = format!("{script}; date +%s.%N");
        let first = platform.api().script(&script, json!({})).await;
        ended(&platform, &first).await;
        let saving = saved_at(&first, "output_workdir").await - said(&first).await;
        let saving_memory = memory.beyond();

        let memory = Memory::watch(platform.pid());
        let second = platform.api().submit(next(&first).await).await;
        ended(&platform, &second).await;
        let restoring = said(&second).await - saved_at(&second, "input_workdir").await;
        let restoring_memory = memory.beyond();

        let (tar_saving, tar_restoring) = tar(&platform, &first).await;
        row(table, format!("saving {tree}"), "s", saving, SAVING * tar_saving + MOMENT);
        row(table, format!("restoring {tree}"), "s", restoring, RESTORING * tar_restoring + MOMENT);
        for (what, memory) in [("saving", saving_memory), ("restoring", restoring_memory)] {
            row(table, format!("memory while {what} {tree}"), "MiB", memory, MEMORY_MIB);
        }
    }
}

fn row(table: &mut Table, what: String, unit: &'static str, ours: f64, limit: f64) {
    let limit = Some((limit * 10.0).round() / 10.0);
    table.push(Row { what, unit, better: Better::Less, ours, p95: None, limit, reference: None });
}

/// A job in the output of another, that says when it begins and leaves nothing.
async fn next(job: &Job) -> Value {
    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", "date +%s.%N; find . -mindepth 1 -delete"]);
    let base = job.result("output_workdir").await["artifact_url"].clone();
    json!({"agent": agent, "input": "", "workdir": {"base_workdir": base}})
}

/// Waits for the end, and passes on how far the platform says that it is.
async fn ended(platform: &Platform, job: &Job) {
    let deadline = Instant::now() + PATIENCE;
    let mut told = platform.log().len();
    loop {
        let status = job.status().await;
        let log = platform.log();
        for line in log[told..].lines().filter(|line| line.contains(" %")) {
            eprintln!("bench: {line}");
        }
        told = log.len();
        if !matches!(status.as_str(), "created" | "pending" | "active") {
            assert_eq!(status, "completed", "{}", job.record().await);
            return;
        }
        assert!(Instant::now() < deadline, "job {} has not ended", job.name);
        tokio::time::sleep(LOOK).await;
    }
}

/// When the agent said that it is.
async fn said(job: &Job) -> f64 {
    let result = job.json("fabric_run_result").await;
    let said = result["response"].as_str().and_then(|text| text.trim().parse().ok());
    said.expect("the agent says a time")
}

async fn saved_at(job: &Job, result: &str) -> f64 {
    let saved = job.result(result).await["created_at"].clone();
    let saved: Timestamp = saved.as_str().and_then(|text| text.parse().ok()).expect("a time");
    saved.as_duration().as_secs_f64()
}

/// What `tar` and `gzip` take for the same: saving, restoring.
async fn tar(platform: &Platform, job: &Job) -> (f64, f64) {
    let dir = TempDir::new().expect("a temporary directory");
    let mut cli = platform.cli();
    cli.args(["jobs", "results", "download", "output_workdir", "--job", &job.name, "-o"]);
    cli.arg(dir.path().join("ours.tar.gz"));
    assert!(cli.output().expect("errand runs").status.success());
    let restoring = timed(dir.path(), "tar -xzf ours.tar.gz");
    let saving = timed(dir.path(), "tar -c output_workdir | gzip -1 > theirs.tar.gz");
    (saving, restoring)
}

fn timed(at: &Path, line: &str) -> f64 {
    let begun = Instant::now();
    let done = Command::new("sh").args(["-c", line]).current_dir(at).status().expect("sh runs");
    assert!(done.success(), "{line}");
    begun.elapsed().as_secs_f64()
}

/// The most memory that a process has held since it was asked, by the kernel's own account.
struct Memory {
    pid: u32,
    idle: f64,
}

impl Memory {
    fn watch(pid: u32) -> Self {
        fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the mark can be reset");
        Self { pid, idle: mebibytes(pid, "VmRSS:") }
    }

    fn beyond(&self) -> f64 {
        mebibytes(self.pid, "VmHWM:") - self.idle
    }
}

fn mebibytes(pid: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it is told");
    let kibibytes: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kibibytes / 1024.0
}
