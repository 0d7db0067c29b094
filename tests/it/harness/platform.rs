//! `errand up` as a child: started, killed, started again on the same data.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use streams::jetstream::{Connect, JetStream};
use streams::topology::Limits;
use tempfile::TempDir;

use super::processes::{eventually, is_running, processes_of_runs};
use super::{Api, Job, open_directory, running_with_argument};

/// How long anything may take on a machine that runs other tests beside.
const PATIENCE: Duration = Duration::from_secs(60);

/// What may differ from test to test.
#[derive(Clone, Debug)]
pub struct Options {
    /// Agents at once.
    pub slots: u32,
    /// Further variables.
    pub env: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { slots: 2, env: Vec::new() }
    }
}

impl Options {
    /// Sets a key of the configuration.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        let variable = format!("ERRAND__{}", key.to_uppercase().replace('.', "__"));
        self.env.push((variable, value.to_string()));
        self
    }

    /// Keeps the objects of another platform's store, in a bucket of its own, reached at an
    /// endpoint that leads there.
    pub fn with_store_of(self, lender: &Platform, endpoint: &str) -> Self {
        let s3 = |key: &str| lender.run["s3"][key].as_str().expect("run.json says").to_owned();
        self.set("store.endpoint", endpoint)
            .set("store.bucket", "borrowed")
            .set("store.access_key", s3("access_key"))
            .set("store.secret_key", s3("secret_key"))
    }

    /// Holds at a named point (see `workers::fault`).
    pub fn hold_at(mut self, point: &str) -> Self {
        self.env.push(("ERRAND_HOLD_AT".to_owned(), point.to_owned()));
        self
    }
}

/// A running platform.
pub struct Platform {
    data: TempDir,
    scratch: TempDir,
    child: Child,
    /// What `run.json` says.
    pub run: Value,
    /// How long it took to say that it is ready.
    pub ready_after: Duration,
}

impl Platform {
    /// Starts one with two slots.
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// Starts one.
    pub async fn with(options: Options) -> Self {
        let data = TempDir::new().expect("a temporary directory");
        let Launched { child, run, ready_after } = launch(&data, options);
        Self { data, scratch: open_directory(), child, run, ready_after }
    }

    /// Kills the platform; its queue must die with it. Agents are not part of the platform and go
    /// on.
    pub async fn kill(&mut self) {
        let queue = self.nats_pid();
        kill_process(pid(self.child.id()), Signal::KILL).expect("it can be killed");
        self.child.wait().expect("it can be waited for");
        let gone = || async { (!is_running(queue)).then_some(()) };
        eventually("nats-server is gone", PATIENCE, gone).await;
    }

    /// Starts again on the same data, after [`Platform::kill`].
    pub async fn restart(mut self, options: Options) -> Self {
        self.start_again(options);
        self
    }

    /// The same where it stands.
    pub fn start_again(&mut self, options: Options) {
        let Launched { child, run, ready_after } = launch(&self.data, options);
        (self.child, self.run, self.ready_after) = (child, run, ready_after);
    }

    /// The address of its object store.
    pub fn store(&self) -> String {
        self.run["s3"]["endpoint"].as_str().expect("run.json says").to_owned()
    }

    /// The API.
    pub fn api(&self) -> Api {
        Api::new(self.run["http"].as_str().expect("run.json names the address"))
    }

    /// A connection of our own to the queue.
    pub async fn broker(&self) -> Arc<JetStream> {
        let (broker, drift) =
            JetStream::connect(&self.nats(), Limits::default()).await.expect("nats is reachable");
        assert_eq!(drift, [], "the topology is as we would make it");
        Arc::new(broker)
    }

    /// How to reach the queue.
    pub fn nats(&self) -> Connect {
        let word = |key: &str| self.run["nats"][key].as_str().expect("run.json says").to_owned();
        let (url, token) = (word("url"), Some(word("token")));
        Connect { url, token, name: "test".to_owned(), ..Connect::default() }
    }

    /// What the platform said on standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.data.path().join("stderr.log")).unwrap_or_default()
    }

    /// Waits until the platform holds at the point that [`Options::hold_at`] named.
    pub async fn holds(&self) {
        let holding = || async { self.log().contains("holding for a test").then_some(()) };
        eventually("the platform holds", PATIENCE, holding).await;
    }

    /// A directory that the platform does not touch, for what agents leave outside.
    pub fn scratch(&self) -> PathBuf {
        self.scratch.path().to_owned()
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.data.path().join("data")
    }

    /// A command of the platform's own on its data directory, beside it.
    pub fn beside(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_errand"));
        command.args(arguments).arg("--data-dir").arg(self.data()).stdin(Stdio::null());
        command
    }

    /// Kills the supervisor of an attempt whose agent says `attempt runs`, once it does.
    pub async fn kill_supervisor(&self, job: &Job, attempt: u32) {
        let run = self.data().join(format!("runs/{}-{attempt}", job.id));
        let said = || async {
            let words = fs::read_to_string(run.join("agent.log")).unwrap_or_default();
            words.contains("attempt runs").then_some(())
        };
        eventually(&format!("attempt {attempt} runs"), PATIENCE, said).await;
        let started = fs::read(run.join("started")).expect("it was started");
        let started: Value = serde_json::from_slice(&started).expect("it is JSON");
        let id = started["pid"].as_u64().and_then(|id| u32::try_from(id).ok());
        kill_process(pid(id.expect("a process id")), Signal::KILL).expect("it is ours");
    }

    /// The platform's own process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process of the queue.
    pub fn nats_pid(&self) -> u32 {
        let config = self.data().join("nats");
        let mut found = Vec::new();
        for entry in fs::read_dir(&config).into_iter().flatten().flatten() {
            found.extend(running_with_argument(entry.path().to_str().unwrap_or_default()));
        }
        *found.first().expect("nats-server runs with a file of the data directory")
    }

    /// The command line client, set up for this platform.
    pub fn cli(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_errand"));
        for variable in ["CONTEXT", "OUTPUT_FORMAT", "TOKEN", "WORKSPACE"] {
            command.env_remove(format!("ERRAND_{variable}"));
        }
        command
            .env("ERRAND_BASE_URL", self.run["http"].as_str().expect("run.json says"))
            .env("ERRAND_CONFIG", self.data.path().join("no-config.yaml"))
            .stdin(Stdio::null());
        command
    }
}

struct Launched {
    child: Child,
    run: Value,
    ready_after: Duration,
}

/// Starts a platform on a directory and waits until it is ready.
fn launch(data: &TempDir, options: Options) -> Launched {
    let started = Instant::now();
    let log = File::options()
        .create(true)
        .append(true)
        .open(data.path().join("stderr.log"))
        .expect("a log file");
    let mut child = command(&data.path().join("data"))
        .args(["--slots", &options.slots.to_string()])
        .envs(options.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("errand starts");
    let mut ready = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut ready).expect("stdout can be read");
    let said = || fs::read_to_string(data.path().join("stderr.log")).unwrap_or_default();
    assert!(ready.starts_with("ready http://"), "errand up said '{ready}': {}", said());
    let ready_after = started.elapsed();
    let run = fs::read(data.path().join("data/run.json")).expect("run.json is there");
    let run = serde_json::from_slice(&run).expect("run.json is JSON");
    Launched { child, run, ready_after }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let id = self.child.id();
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(pid(id), Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(30);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        end_agents(&self.data());
        if std::thread::panicking() {
            eprintln!("--- the platform said:\n{}", self.log());
        }
    }
}

/// Agents outlive their platform by design, but not the test.
pub(super) fn end_agents(data: &Path) {
    let runs = data.join("runs");
    for (id, run) in processes_of_runs() {
        if runs.join(run).exists() {
            let _ = kill_process(pid(id), Signal::KILL);
        }
    }
}

/// `errand up` on a data directory and a free port.
pub fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_errand"));
    command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command
}

fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id")
}
