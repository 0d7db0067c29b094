//! The parts apart: an API server and workers as processes of their own, on a queue, an object
//! store and a database that belong to none of them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use streams::jetstream::{Connect, JetStream};
use streams::topology::Limits;
use tempfile::TempDir;

use super::platform::end_agents;
use super::{Api, Nats, Options, Platform, Postgres, eventually};

/// Where the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// What the parts share.
pub struct Parts {
    /// Only its object store is used, with a bucket of our own in it.
    pub lender: Platform,
    nats: Nats,
    _postgres: Option<Postgres>,
    data: TempDir,
    settings: Options,
    started: AtomicU32,
}

/// A part that is told to stop when it goes out of scope.
pub struct Part {
    child: Child,
    ready: String,
    log: PathBuf,
}

impl Parts {
    pub async fn on(database: Database) -> Self {
        let (lender, nats) = (Platform::start().await, Nats::start());
        let data = TempDir::new().expect("a temporary directory");
        let endpoint = lender.run["s3"]["endpoint"].as_str().expect("run.json says").to_owned();
        let mut settings = Options::default()
            .with_store_of(&lender, &endpoint)
            .set("nats.url", nats.url().await)
            .set("data_dir", data.path().display());
        let postgres = (database == Database::Postgres).then(Postgres::start);
        if let Some(postgres) = &postgres {
            settings = settings.set("database.url", postgres.url());
        }
        Self { lender, nats, _postgres: postgres, data, settings, started: AtomicU32::new(0) }
    }

    pub fn server(&self) -> Part {
        self.part(&["serve", "--listen", "127.0.0.1:0"], &[])
    }

    pub fn worker(&self, steps: &str) -> Part {
        self.part(&["worker", "--steps", steps, "--slots", "2"], &[])
    }

    /// A worker that holds at a named point.
    pub fn worker_held_at(&self, steps: &str, point: &str) -> Part {
        let hold = [("ERRAND_HOLD_AT", point)];
        self.part(&["worker", "--steps", steps, "--slots", "2"], &hold)
    }

    /// A connection of our own to the queue.
    pub async fn broker(&self) -> Arc<JetStream> {
        let to = Connect { url: self.nats.url().await, token: None, name: "test".to_owned() };
        let (broker, _) = JetStream::connect(&to, Limits::default()).await.expect("nats answers");
        Arc::new(broker)
    }

    fn part(&self, arguments: &[&str], more: &[(&str, &str)]) -> Part {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.data.path().join(format!("part-{number}.log"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_errand"))
            .args(arguments)
            .envs(self.settings.env.iter().cloned())
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a log file"))
            .spawn()
            .expect("errand starts");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut ready).expect("stdout can be read");
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let ready = ready.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("{}", said()));
        Part { ready: ready.to_owned(), child, log }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        end_agents(self.data.path());
    }
}

impl Part {
    /// The API of a server.
    pub fn api(&self) -> Api {
        Api::new(&self.ready)
    }

    /// What it said on standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said something.
    pub async fn says(&self, words: &str) {
        let said = || async { self.log().contains(words).then_some(()) };
        eventually(&format!("the part says '{words}'"), Duration::from_secs(60), said).await;
    }

    /// Drains: what it has in hand ends, agents go on.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let mut status = None;
        eventually("the part has drained", Duration::from_secs(30), || {
            status = self.child.try_wait().expect("it can be asked for");
            std::future::ready(status)
        })
        .await;
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(pid.expect("a process id"), signal);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- a part said:\n{}", self.log());
        }
    }
}
