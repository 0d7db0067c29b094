//! The parts apart: an API server and a worker as processes of their own, on a queue, an object
//! store and a PostgreSQL that belong to neither.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Api, Nats, Platform, Postgres, eventually};

/// A part that is told to stop when it goes out of scope.
struct Part {
    child: Child,
    ready: String,
}

impl Part {
    fn start(arguments: &[&str], data: &Path, settings: &[(&str, String)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_errand"))
            .args(arguments)
            .envs(settings.iter().map(|(name, value)| (*name, value)))
            .env("ERRAND__DATA_DIR", data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("errand starts");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut ready).expect("stdout can be read");
        let ready = ready.trim().strip_prefix("ready ").expect("it says that it is ready");
        Self { ready: ready.to_owned(), child }
    }

    /// Drains: what it has in hand ends, agents go on.
    async fn stop(mut self) {
        self.terminate();
        let ended = |child: &mut Child| child.try_wait().expect("it can be asked for");
        let mut status = None;
        eventually("the part has drained", Duration::from_secs(30), || {
            status = ended(&mut self.child);
            std::future::ready(status)
        })
        .await;
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }

    fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(pid.expect("a process id"), Signal::TERM);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.terminate();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_server_and_a_worker_share_external_parts_on_postgresql() {
    // Only its object store is used, with a bucket of our own in it.
    let lender = Platform::start().await;
    let s3 = |key: &str| lender.run["s3"][key].as_str().expect("run.json says").to_owned();
    let (nats, postgres) = (Nats::start(), Postgres::start());
    let settings = [
        ("ERRAND__NATS__URL", nats.url().await),
        ("ERRAND__STORE__ENDPOINT", s3("endpoint")),
        ("ERRAND__STORE__BUCKET", "apart".to_owned()),
        ("ERRAND__STORE__ACCESS_KEY", s3("access_key")),
        ("ERRAND__STORE__SECRET_KEY", s3("secret_key")),
        ("ERRAND__DATABASE__URL", postgres.url()),
    ];
    let data = TempDir::new().expect("a temporary directory");
    let server = Part::start(&["serve", "--listen", "127.0.0.1:0"], data.path(), &settings);
    let steps = "resolve,stage,invoke,act,archive";
    let worker = ["worker", "--steps", steps, "--slots", "2"];
    let first = Part::start(&worker, data.path(), &settings);

    let api = Api::new(&server.ready);
    let job = api.script("echo apart; echo kept > file", json!({"context": {"a": "ü"}})).await;
    assert_eq!(job.ends(Duration::from_secs(20)).await["status"], "completed");
    assert_eq!(job.json("fabric_run_result").await["response"], "apart");

    // A worker that is told to stop leaves its agent to the next one at this place.
    let runs = lender.scratch().join("runs");
    let script = format!("echo run >> {}; sleep 5; echo done", runs.display());
    let long = api.script(&script, json!({})).await;
    long.reaches("active", Duration::from_secs(20)).await;
    first.stop().await;
    let second = Part::start(&worker, data.path(), &settings);
    assert_eq!(long.ends(Duration::from_secs(60)).await["status"], "completed");
    assert_eq!(std::fs::read_to_string(runs).expect("it ran"), "run\n");
    second.stop().await;
    server.stop().await;
}
