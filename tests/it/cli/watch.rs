//! `jobs watch` and `tail`: what they stream, and what they survive.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::proxy::Proxy;
use super::{run, text};
use crate::harness::{Options, Platform};

const SOON: Duration = Duration::from_secs(60);

/// A `jobs watch` or `tail` that runs.
struct Watching {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Watching {
    fn start(platform: &Platform, args: &[&str]) -> Self {
        let mut command = Command::from(platform.cli());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("errand runs");
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let (stdout, stderr) = (BufReader::new(stdout).lines(), BufReader::new(stderr).lines());
        Self { child, stdout, stderr }
    }

    async fn line(&mut self) -> Option<String> {
        self.stdout.next_line().await.expect("stdout can be read")
    }

    /// Waits until something is said on stderr.
    async fn says(&mut self, word: &str) {
        loop {
            let line = self.stderr.next_line().await.expect("stderr can be read");
            if line.unwrap_or_else(|| panic!("it never said '{word}'")).contains(word) {
                return;
            }
        }
    }

    /// The lines to come, and how it ends.
    async fn rest(mut self) -> (Vec<String>, ExitStatus) {
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        (lines, self.child.wait().await.expect("it ends"))
    }
}

/// A script that says `first`, waits for a file, and says `last`.
fn waiting_for(file: &str) -> String {
    format!("echo first; while [ ! -e {file} ]; do sleep 0.1; done; echo last")
}

#[tokio::test]
async fn watch_streams_lines_while_the_agent_runs() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let job = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    let mut watch = Watching::start(&platform, &["jobs", "watch", &job.name]);
    while watch.line().await.expect("a line") != "first" {}
    // The line came while the agent runs, which is told a moment later.
    job.reaches("active", SOON).await;
    std::fs::write(&go, "").expect("a file");
    let (lines, status) = watch.rest().await;
    assert!(lines.contains(&"last".to_owned()), "{lines:?}");
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn case_k6_a_watch_that_is_killed_or_cut_off_leaves_the_job_running() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let job = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    let watch = ["jobs", "watch", job.name.as_str()];
    let mut killed = Watching::start(&platform, &watch);
    while killed.line().await.expect("a line") != "first" {}
    job.reaches("active", SOON).await;
    killed.child.kill().await.expect("it can be killed");
    assert_eq!(job.status().await, "active");

    let proxy = Proxy::to(&platform).await;
    let mut cut_off =
        Watching::start(&platform, &["jobs", "watch", &job.name, "--base-url", &proxy.url]);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|line| line != "first") {
        seen.push(cut_off.line().await.expect("a line"));
    }
    proxy.cut();
    cut_off.says("trying again").await;
    assert_eq!(job.status().await, "active");
    proxy.lead_to(&platform);
    cut_off.says("the server is back").await;
    std::fs::write(&go, "").expect("a file");
    let (rest, status) = cut_off.rest().await;
    assert_eq!(status.code(), Some(0));
    seen.extend(rest);
    assert_eq!(seen, job.log().await, "every line once");
}

#[tokio::test]
async fn case_w2_a_watch_survives_a_restart_of_the_server() {
    let mut platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let job = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    let proxy = Proxy::to(&platform).await;
    let mut watch =
        Watching::start(&platform, &["jobs", "watch", &job.name, "--base-url", &proxy.url]);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|line| line != "first") {
        seen.push(watch.line().await.expect("a line"));
    }
    platform.kill().await;
    proxy.cut();
    watch.says("trying again").await;
    std::fs::write(&go, "").expect("a file");
    let platform = platform.restart(Options::default()).await;
    proxy.lead_to(&platform);
    let (rest, status) = watch.rest().await;
    assert_eq!(status.code(), Some(0));
    seen.extend(rest);
    assert_eq!(seen, job.at(platform.api()).log().await, "every line once");
    assert!(seen.contains(&"last".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn case_w2_a_watch_of_a_job_that_has_ended_or_is_about_to_returns() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let job = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    let watch = ["jobs", "watch", job.name.as_str()];
    let mut watches: Vec<_> = (0..4).map(|_| Watching::start(&platform, &watch)).collect();
    watches[0].says("active").await;
    std::fs::write(&go, "").expect("a file");
    for watch in watches {
        let (lines, status) = watch.rest().await;
        assert_eq!(status.code(), Some(0));
        assert_eq!(lines, job.log().await);
    }
    let began = Instant::now();
    let output = run(&platform, &watch);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    assert_eq!(text(output.stdout).lines().collect::<Vec<_>>(), job.log().await);
}

/// Longer than the longest pause between two looks.
#[tokio::test]
async fn case_w2_a_watch_of_a_job_that_says_nothing_stays() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done; sleep 6", go.display());
    let job = platform.api().script(&script, json!({})).await;
    let mut watch = Watching::start(&platform, &["jobs", "watch", &job.name]);
    watch.says("active").await;
    let began = Instant::now();
    std::fs::write(&go, "").expect("a file");
    let (lines, status) = watch.rest().await;
    assert_eq!(status.code(), Some(0));
    assert!(began.elapsed() >= Duration::from_secs(6), "it left after {:?}", began.elapsed());
    assert_eq!(lines, job.log().await);
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over_and_leaves_out_the_past_if_asked() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let job = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    let mut first = Watching::start(&platform, &["jobs", "watch", &job.name]);
    while first.line().await.expect("a line") != "first" {}
    job.reaches("active", SOON).await;

    let output = run(&platform, &["jobs", "watch", &job.name, "--timeout", "1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(output.stderr);
    assert!(said.contains(&format!("Timed out watching job '{}'", job.name)), "{said}");
    assert_eq!(job.status().await, "active");

    let mut late = Watching::start(&platform, &["jobs", "watch", &job.name, "--no-history"]);
    late.says("active").await;
    std::fs::write(&go, "").expect("a file");
    let (lines, status) = late.rest().await;
    assert_eq!(status.code(), Some(0));
    assert!(lines.contains(&"last".to_owned()), "{lines:?}");
    assert!(!lines.contains(&"first".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn tail_prints_the_last_lines_and_those_that_follow() {
    let platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let job = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    let mut watch = Watching::start(&platform, &["jobs", "watch", &job.name]);
    while watch.line().await.expect("a line") != "first" {}

    let mut tail = Watching::start(&platform, &["jobs", "tail", &job.name, "-n", "1", "-f"]);
    assert_eq!(tail.line().await.as_deref(), Some("first"));
    std::fs::write(&go, "").expect("a file");
    let (lines, status) = tail.rest().await;
    assert_eq!((lines[0].as_str(), status.code()), ("last", Some(0)));

    let output = text(run(&platform, &["jobs", "tail", &job.name, "-n", "2"]).stdout);
    let log = job.log().await;
    assert_eq!(output.lines().collect::<Vec<_>>(), log[log.len() - 2..]);
    let page = super::json(&platform, &["jobs", "tail", &job.name, "--output-format", "json"]);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(log.len()));
}

/// A way that dies without a word, and a server that is started again.
#[tokio::test]
async fn case_e8_following_goes_on_by_the_last_number_without_gap_or_repeat() {
    let mut platform = Platform::start().await;
    let go = platform.scratch().join("go");
    let script =
        format!("seq 1 150; while [ ! -e {} ]; do sleep 0.1; done; seq 151 300", go.display());
    let job = platform.api().script(&script, json!({})).await;
    let proxy = Proxy::to(&platform).await;
    let mut watch =
        Watching::start(&platform, &["jobs", "watch", &job.name, "--base-url", &proxy.url]);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|line| line != "100") {
        seen.push(watch.line().await.expect("a line"));
    }
    proxy.stall();
    watch.says("trying again").await;
    platform.kill().await;
    proxy.cut();
    std::fs::write(&go, "").expect("a file");
    let platform = platform.restart(Options::default()).await;
    proxy.lead_to(&platform);
    let (rest, status) = watch.rest().await;
    assert_eq!(status.code(), Some(0));
    seen.extend(rest);
    assert_eq!(seen, job.at(platform.api()).log().await, "every line once");
    let said = seen.iter().filter(|line| line.parse::<u32>().is_ok());
    assert!(said.eq((1..=300).map(|n| n.to_string()).collect::<Vec<_>>().iter()), "{seen:?}");
}

#[tokio::test]
async fn case_e1_a_tail_from_before_the_start_has_each_stream_complete_and_in_order() {
    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    let go = platform.scratch().join("go");
    let before = platform.api().script(&waiting_for(&go.display().to_string()), json!({})).await;
    before.reaches("active", SOON).await;
    let script = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo o$i; echo e$i >&2; done";
    let job = platform.api().script(script, json!({})).await;
    let mut tail = Watching::start(&platform, &["jobs", "tail", &job.name, "-n", "5", "-f"]);
    tail.says("pending").await;
    std::fs::write(&go, "").expect("a file");
    let (lines, status) = tail.rest().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines, job.log().await, "every line once");
    let of = |prefix: &str| -> Vec<u32> {
        lines.iter().filter_map(|line| line.strip_prefix(prefix)?.parse().ok()).collect()
    };
    assert_eq!(of("o"), (1..=5000).collect::<Vec<u32>>());
    assert_eq!(of("[stderr] e"), (1..=5000).collect::<Vec<u32>>());
}
