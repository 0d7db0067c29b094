//! FC-L and FC-A13: much output, many jobs, little space.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use streams::topology::{Full, Limits, StreamName, streams};

use crate::harness::{Job, Options, Platform, eventually, resident_mib};

/// Gigabytes take their time on a machine that does other things, too.
const LATER: Duration = Duration::from_secs(150);

/// What the platform may grow by while it handles any amount of output.
const GROWTH_MIB: u64 = 64;

/// The most that the platform had in memory while `jobs` ran.
async fn highest_mib(platform: &Platform, jobs: &[Job]) -> u64 {
    let highest = AtomicU64::new(0);
    for job in jobs {
        let ended = || async {
            highest.fetch_max(resident_mib(platform.pid()), Ordering::Relaxed);
            let status = job.status().await;
            matches!(status.as_str(), "completed" | "error").then_some(())
        };
        eventually("the job ends", LATER, ended).await;
    }
    highest.into_inner()
}

#[tokio::test]
async fn case_l1_gigabytes_of_output_leave_the_memory_flat() {
    let platform = Platform::start().await;
    let api = platform.api();
    let before = resident_mib(platform.pid());
    let scripts = ["head -c 3000000000 /dev/zero", "head -c 100000000 /dev/urandom"];
    let jobs = join_all(scripts.map(|script| api.script(script, json!({})))).await;
    let highest = highest_mib(&platform, &jobs).await;
    println!("{before} MiB before, {highest} MiB at most");
    assert!(highest < before + GROWTH_MIB, "{before} MiB before, {highest} MiB at most");
    for job in &jobs {
        let record = job.record().await;
        assert_eq!(record["status"], "completed", "bad UTF-8 is no failure: {record}");
    }
    let artifacts = jobs[0].directory("output_artifacts").await;
    let kept = find(artifacts.path(), "stdout");
    let cut = b" of 3000000000 bytes kept]\n";
    assert!(fs::read(kept).expect("it was kept").ends_with(cut), "what is missing is counted");
}

/// The bytes of the case, 20 GB of lines of one letter, would take an hour: each agent writes 2 MB
/// of longer ones instead.
#[tokio::test]
async fn case_l2_twenty_agents_that_shout_do_not_hurt_each_other() {
    let platform = Platform::with(Options { slots: 20, ..Options::default() }).await;
    let api = platform.api();
    let before = resident_mib(platform.pid());
    let yes = "yes 'a line of some length, as people and programs write them' | head -c 2000000";
    let shout = |_| api.script(yes, json!({}));
    let mut jobs = join_all((0..20).map(shout)).await;
    jobs.push(api.script("echo unhurt", json!({})).await);
    let highest = highest_mib(&platform, &jobs).await;
    println!("{before} MiB before, {highest} MiB at most");
    for job in &jobs {
        assert_eq!(job.record().await["status"], "completed");
    }
    assert!(jobs[20].log().await.contains(&"unhurt".to_owned()));
}

/// By what one waiting job takes: its submission is below 1 KiB, whatever its spec holds, and so
/// many of them fit into the stream. That a full one means 503 is
/// `what_is_not_the_callers_fault` in `src/http/tests/errors.rs`.
#[tokio::test]
async fn case_l4_a_hundred_thousand_jobs_can_wait() {
    const JOBS: u64 = 100_000;
    let intake = streams(Limits::default()).remove(0);
    assert_eq!((intake.name, intake.full), (StreamName::Intake, Full::RefuseNew));
    assert!(intake.max_bytes >= JOBS * 1024, "{} bytes", intake.max_bytes);

    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    let api = platform.api();
    let first = api.script("sleep 600", json!({})).await;
    first.reaches("active", LATER).await;
    let input = "a long prompt ".repeat(10_000);
    let waiting = join_all((0..12).map(|_| api.script("true", json!({"input": input})))).await;
    let broker = platform.broker().await;
    for job in &waiting {
        for (phase, fact) in job.facts(&*broker).await {
            let Some(fact) = fact else { continue };
            let limit = if StreamName::of(phase) == StreamName::Intake { 1024 } else { 4096 };
            let size = fact.payload.len() + fact.subject.len();
            assert!(size < limit, "{phase} has {size} bytes");
        }
    }
    for job in waiting.iter().chain([&first]) {
        job.cancel().await;
    }
    for job in waiting.iter().chain([&first]) {
        assert_eq!(job.ends(LATER).await["status"], "cancelled");
    }
}

/// A file system of a size, mounted over a directory for as long as this value lives.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn over(directory: &Path, mib: u32) -> Self {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=755"), "scratch"])
            .arg(directory)
            .output()
            .expect("mount can be run");
        assert!(mount.status.success(), "this test mounts a tmpfs, run it as root: {mount:?}");
        Self(directory.to_owned())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: an agent that a failed test left must not keep it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn case_a13_results_are_streamed_from_a_disk_without_room_for_a_copy() {
    let platform = Platform::start().await;
    let _scratch = Tmpfs::over(&platform.data().join("runs"), 64);
    let fits = "head -c 41943040 /dev/urandom > big; echo done";
    let job = platform.api().script(fits, json!({})).await;
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}");
    let workdir = job.directory("output_workdir").await;
    let big = fs::metadata(workdir.path().join("big")).expect("it was saved");
    assert_eq!(big.len(), 41_943_040);
}

#[tokio::test]
async fn case_a13_a_full_disk_is_said_and_the_run_result_is_kept() {
    let platform = Platform::start().await;
    let _scratch = Tmpfs::over(&platform.data().join("runs"), 64);
    // Nothing is left for the output that the platform keeps, either.
    let fills = "cat /dev/zero > big; seq 1 100000; exit 0";
    let job = platform.api().script(fills, json!({})).await;
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "disk_full", "{record}");
    let details = record["error_details"].to_string().to_lowercase();
    assert!(details.contains("no space"), "{record}");
    assert!(job.result_names().await.contains(&"fabric_run_result".to_owned()));
}

/// The file of that name below a directory.
fn find(directory: &Path, name: &str) -> PathBuf {
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).expect("it can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else if path.file_stem().is_some_and(|stem| stem == name) {
                return path;
            }
        }
    }
    panic!("no {name} below {}", directory.display());
}
