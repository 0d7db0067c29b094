//! Lines that are streamed, by a client that dies or to a server that does.

use std::io;

use futures_util::stream;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::register;
use crate::cli::{json as printed, run, text};
use crate::harness::{Options, Platform};

const LINES: usize = 150;
const WRONG: usize = 75;

fn line(number: usize) -> String {
    let wrong = json!({"spec": {"agent": "quick", "input": "x", "surplus": 1}});
    let right = json!({"spec": {"agent": "quick", "input": number.to_string()}});
    format!("{}\n", if number == WRONG { wrong } else { right })
}

fn url(platform: &Platform, query: &str) -> String {
    let base = platform.run["http"].as_str().expect("run.json names the address");
    format!("{base}/apis/agents/v2/workspaces/default/jobs/execute:batch?{query}")
}

/// A batch whose lines come one by one.
struct Sending {
    lines: mpsc::Sender<io::Result<String>>,
    answer: reqwest::Response,
    came: String,
}

impl Sending {
    async fn start(platform: &Platform, query: &str) -> Self {
        let (lines, coming) = mpsc::channel(1);
        let coming = stream::unfold(coming, async |mut it| Some((it.recv().await?, it)));
        let request = reqwest::Client::new().post(url(platform, query));
        let request = request.header("idempotency-key", "k");
        let request = request.body(reqwest::Body::wrap_stream(coming));
        let answer = request.send().await.expect("it answers while lines still come");
        assert_eq!(answer.status(), StatusCode::OK);
        Self { lines, answer, came: String::new() }
    }

    /// Sends a line and waits for its outcome.
    async fn send(&mut self, line: String) {
        self.lines.send(Ok(line)).await.expect("it is taken");
        let before = self.came.lines().count();
        while self.came.lines().count() == before || !self.came.ends_with('\n') {
            let chunk = self.answer.chunk().await.expect("it goes on").expect("an outcome");
            self.came.push_str(str::from_utf8(&chunk).expect("text"));
        }
    }
}

#[tokio::test]
async fn case_t1_a_batch_goes_on_after_the_server_was_killed() {
    let mut platform = Platform::start().await;
    register(&platform, "quick", "cat").await;
    let mut sending = Sending::start(&platform, "group=nightly&lines=150").await;
    for number in 1..=50 {
        sending.send(line(number)).await;
    }
    // Some more, of which nobody hears.
    for number in 51..=60 {
        sending.lines.send(Ok(line(number))).await.expect("it is taken");
    }
    platform.kill().await;
    let known = sending.came;
    platform.start_again(Options::default());

    let all: String = (1..=LINES).map(line).collect();
    let request = reqwest::Client::new().post(url(&platform, "group=nightly&lines=150"));
    let answer = request.header("idempotency-key", "k").body(all).send().await.expect("answers");
    let outcomes = answer.text().await.expect("it is whole");
    let parse = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let found: Vec<_> = outcomes.lines().map(parse).collect();
    let numbers: Vec<_> = found.iter().filter_map(|outcome| outcome["line"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(1..=LINES as u64), "{numbers:?}");
    for (number, outcome) in (1..).zip(&found) {
        let wanted = if number == WRONG { 422 } else { 201 };
        assert_eq!(outcome["status"], wanted, "{outcome}");
    }
    for (before, now) in known.lines().map(parse).zip(&found) {
        assert_eq!(before["job"]["id"], now["job"]["id"], "the same job");
    }
    let shown = printed(&platform, &["batch", "get", "nightly"]);
    let counts = ["state", "received", "jobs", "refused"].map(|key| shown[key].clone());
    assert_eq!(counts, [json!("complete"), json!(LINES), json!(LINES - 1), json!(1)], "{shown}");
}

#[tokio::test]
async fn case_t2_the_watch_of_a_batch_whose_client_died_says_so() {
    let platform = Platform::start().await;
    register(&platform, "quick", "cat").await;
    let mut sending = Sending::start(&platform, "group=half&lines=100&seal_after=2").await;
    for number in 1..=40 {
        sending.send(line(number)).await;
    }
    sending.lines.send(Err(io::Error::other("killed"))).await.expect("it is there");
    drop(sending);
    let watch = run(&platform, &["batch", "watch", "half"]);
    assert_eq!(watch.status.code(), Some(1), "{watch:?}");
    let said = text(watch.stderr);
    assert!(said.contains("Batch 'half' is incomplete: 40 of 100 lines came"), "{said}");
    let shown: Value = serde_json::from_slice(&watch.stdout).expect("one document");
    assert_eq!((&shown["completed"], &shown["failed"]), (&json!(40), &json!(0)), "{shown}");
    let listed = printed(&platform, &["batch", "list"]);
    assert_eq!(listed["data"][0]["group"], "half");
}
