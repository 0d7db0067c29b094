//! Many lines, and everything that carries them is killed in between. `just batch [LINES]`.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{index, register, specs, word};
use crate::harness::{Options, Platform, resident_mib, send};

/// So many lines in `./dev test`.
const LINES: usize = 200;

const SLOTS: u32 = 6;

/// How long a line may take at the worst, on a machine that does much else.
const A_LINE: Duration = Duration::from_secs(2);

/// What the memory may differ by between a part of many lines and all of them.
const FLAT_MIB: u64 = 24;
const MANY: usize = 2000;

/// `batch run` as a child, and the most memory that was seen.
struct Client {
    child: Child,
    directory: PathBuf,
    resident: u64,
}

impl Client {
    fn start(platform: &Platform, file: &Path, directory: &Path) -> Self {
        let mut command = platform.cli();
        command.args(["batch", "run", word(file), "--resume", "-o", word(directory)]);
        command.args(["--concurrency", "100", "--group", "many"]);
        let child = command.stdout(Stdio::null()).spawn().expect("errand runs");
        Self { child, directory: directory.to_owned(), resident: 0 }
    }

    /// Waits until so many entries stand in the index, or the client has ended.
    async fn reaches(&mut self, entries: usize, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return Some(status);
            }
            self.resident = self.resident.max(resident(self.child.id()).unwrap_or_default());
            let text = fs::read(self.directory.join("index.jsonl")).unwrap_or_default();
            let there = text.iter().filter(|byte| **byte == b'\n').count();
            if there >= entries {
                return None;
            }
            assert!(Instant::now() < deadline, "only {there} of {entries} within {within:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn until_killed_at(mut self, entries: usize, within: Duration) -> u64 {
        let ended = self.reaches(entries, within).await;
        assert_eq!(ended, None, "it is not done yet");
        send(self.child.id(), Signal::KILL);
        self.child.wait().expect("it can be waited for");
        self.resident
    }
}

/// Memory of a process that may be about to end, in MiB.
fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

#[tokio::test]
async fn a_batch_of_many_lines_survives_two_kills() {
    let wanted = std::env::var("ERRAND_BATCH_LINES").ok();
    let lines = wanted.map_or(LINES, |wanted| wanted.parse().expect("a number of lines"));
    let within = Duration::from_secs(60) + A_LINE * u32::try_from(lines).expect("a number");
    let mut platform = Platform::with(Options { slots: SLOTS, ..Options::default() }).await;
    let ran = platform.scratch().join("ran");
    fs::write(&ran, "").expect("a file");
    fs::set_permissions(&ran, Permissions::from_mode(0o666)).expect("it is ours");
    let script = format!("read id; echo $id >> {}; echo $id > out; echo $id", ran.display());
    register(&platform, "tick", &script).await;
    let line = |id: usize| json!({"spec": {"agent": "tick", "input": format!("{id}\n")}});
    let file = specs(&platform, (1..=lines).map(line));
    let directory = platform.scratch().join("results");

    let began = Instant::now();
    let first =
        Client::start(&platform, &file, &directory).until_killed_at(lines / 5, within).await;
    let server = resident_mib(platform.pid());
    platform.kill().await;
    platform.start_again(Options { slots: SLOTS, ..Options::default() });
    let second = Client::start(&platform, &file, &directory);
    let second = second.until_killed_at(lines * 3 / 5, within).await;
    let mut last = Client::start(&platform, &file, &directory);
    let status = last.reaches(usize::MAX, within).await.expect("it ends");
    let took = began.elapsed();
    assert!(status.success(), "{status}");

    let entries = index(&directory);
    let numbers: Vec<_> = entries.iter().filter_map(|entry| entry["line"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(1..=lines as u64), "each line once, in order: {numbers:?}");
    let completed = entries.iter().filter(|entry| entry["status"] == "completed").count();
    assert_eq!(completed, lines);
    let text = fs::read_to_string(&ran).expect("it is there");
    let ids: Vec<usize> = text.lines().map(|id| id.parse().expect("a number")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), lines, "each agent ran");
    assert_eq!(ids.len(), lines, "none ran twice");
    let jobs = platform.api().get("/apis/jobs/v2/workspaces/default/jobs").await;
    assert_eq!(jobs["pagination"]["total_results"], lines);
    for entry in &entries {
        let results = entry["results"].as_array().expect("a list");
        assert!(results.iter().any(|result| result["name"] == "output_workdir"), "{entry}");
        for result in results {
            let path = directory.join(result["path"].as_str().expect("a path"));
            let digest = hex::encode(Sha256::digest(fs::read(path).expect("it is there")));
            assert_eq!(result["sha256"], *digest, "{result}");
        }
    }
    println!(
        "{lines} lines in {:.0} s: {:.1}/s",
        took.as_secs_f64(),
        lines as f64 / took.as_secs_f64()
    );
    println!("client's MiB: {first}, {second}, {}", last.resident);
    println!("server's MiB: {server} after a fifth, {} at the end", resident_mib(platform.pid()));
    let flat = last.resident <= first + FLAT_MIB;
    assert!(lines < MANY || flat, "the client grows: {first}, {second}, {}", last.resident);
}
