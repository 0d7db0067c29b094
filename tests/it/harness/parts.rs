//! The parts apart: an API server and workers as processes of their own, on a queue, an object
//! store and a database that belong to none of them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use streams::jetstream::{Connect, JetStream};
use streams::topology::Limits;
use tempfile::TempDir;

use super::nats::free_ports;
use super::platform::end_agents;
use super::{Api, Nats, Options, Platform, Postgres, eventually, send};

/// Where the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// Where workers are whose place is not named.
pub const HERE: &str = "here";

/// What the parts share.
pub struct Parts {
    /// Only its object store is used, with a bucket of our own in it.
    pub lender: Platform,
    /// None where it is somebody else's.
    pub nats: Option<Nats>,
    pub postgres: Option<Postgres>,
    queue: (String, Limits),
    data: TempDir,
    settings: Options,
    started: AtomicU32,
}

/// A part that is told to stop when it goes out of scope.
pub struct Part {
    command: Command,
    child: Child,
    ready: String,
    log: PathBuf,
}

impl Parts {
    pub async fn on(database: Database) -> Self {
        let (lender, nats) = (Platform::start().await, Nats::start());
        let endpoint = lender.store();
        let queue = (nats.url().await, Limits::default());
        let mut parts = Self::of(lender, &endpoint, queue, database);
        parts.nats = Some(nats);
        parts
    }

    /// The same on what is there: a store, reached at an endpoint, and a queue.
    pub fn of(
        lender: Platform,
        endpoint: &str,
        queue: (String, Limits),
        database: Database,
    ) -> Self {
        let data = TempDir::new().expect("a temporary directory");
        let mut settings = Options::default()
            .with_store_of(&lender, endpoint)
            .set("nats.url", &queue.0)
            .set("nats.replicas", queue.1.replicas);
        let postgres = (database == Database::Postgres).then(Postgres::start);
        let url = postgres.as_ref().map_or_else(
            || format!("sqlite://{}", data.path().join("errand.db").display()),
            Postgres::url,
        );
        settings = settings
            .set("database.url", url)
            .set("data_dir", data.path().join(HERE).display())
            .set("secrets.key_file", data.path().join("secret.key").display())
            .set("worker.slots", 2);
        let started = AtomicU32::new(0);
        Self { lender, nats: None, postgres, queue, data, settings, started }
    }

    /// Sets a key of the configuration of all parts that are started from now on.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.settings = std::mem::take(&mut self.settings).set(key, value);
    }

    /// Sets a variable of theirs.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.settings.env.push((name.to_owned(), value.to_owned()));
    }

    /// A server, which comes back at the same address.
    pub fn server(&self) -> Part {
        let [port] = free_ports();
        self.part(&["serve", "--listen", &format!("127.0.0.1:{port}")], &[])
    }

    /// A server with further variables.
    pub fn server_with(&self, more: &[(&str, &str)]) -> Part {
        self.part(&["serve", "--listen", "127.0.0.1:0"], more)
    }

    /// Runs a command of the platform's own to its end, on what the parts share.
    pub fn run(&self, arguments: &[&str], more: &[(&str, &str)]) -> Output {
        self.errand(arguments).envs(more.iter().copied()).output().expect("errand runs")
    }

    /// The data directory that they share.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// Where the records are.
    pub fn database_url(&self) -> String {
        match &self.postgres {
            Some(postgres) => postgres.url(),
            None => format!("sqlite://{}", self.data.path().join("errand.db").display()),
        }
    }

    pub fn worker(&self, steps: &str) -> Part {
        self.worker_at(HERE, steps, &[])
    }

    /// A worker at a place of its own: agents that it starts are found again only there. `more`
    /// are further keys of the configuration.
    pub fn worker_at(&self, place: &str, steps: &str, more: &[(&str, &str)]) -> Part {
        let own = Options::default().set("data_dir", self.place(place).display());
        let own = more.iter().fold(own, |own, (key, value)| own.set(key, value));
        let own: Vec<_> = own.env.iter().map(|(key, value)| (&**key, &**value)).collect();
        self.part(&["worker", "--steps", steps], &own)
    }

    /// A worker that holds at a named point.
    pub fn worker_held_at(&self, steps: &str, point: &str) -> Part {
        self.part(&["worker", "--steps", steps], &[("ERRAND_HOLD_AT", point)])
    }

    /// The command line, with the configuration of the parts.
    pub fn errand(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_errand"));
        command.args(arguments).envs(self.settings.env.iter().cloned()).stdin(Stdio::null());
        command
    }

    /// Where the queue listens.
    pub fn nats_url(&self) -> String {
        self.queue.0.clone()
    }

    /// The data directory of a place.
    pub fn place(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    /// A connection of our own to the queue.
    pub async fn broker(&self) -> Arc<JetStream> {
        self.broker_with(self.queue.1).await
    }

    /// The same; the first connection of all makes the streams with its limits.
    pub async fn broker_with(&self, limits: Limits) -> Arc<JetStream> {
        let to = Connect { url: self.nats_url(), name: "test".to_owned(), ..Connect::default() };
        let (broker, _) = JetStream::connect(&to, limits).await.expect("nats answers");
        Arc::new(broker)
    }

    fn part(&self, arguments: &[&str], more: &[(&str, &str)]) -> Part {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.data.path().join(format!("part-{number}.log"));
        let said = File::options().create(true).append(true).open(&log).expect("a log file");
        let mut command = self.errand(arguments);
        command.envs(more.iter().copied()).stdout(Stdio::piped()).stderr(said);
        let (child, ready) = launch(&mut command).unwrap_or_else(|| {
            panic!("a part did not start: {}", fs::read_to_string(&log).unwrap_or_default())
        });
        Part { command, child, ready, log }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for place in fs::read_dir(self.data.path()).into_iter().flatten().flatten() {
            end_agents(&place.path());
        }
    }
}

/// Starts a part and waits until it says that it is ready; none when it ends before that.
fn launch(command: &mut Command) -> Option<(Child, String)> {
    let mut child = command.spawn().expect("errand starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut line).expect("stdout can be read");
    match line.trim().strip_prefix("ready ") {
        Some(ready) => Some((child, ready.to_owned())),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            None
        }
    }
}

impl Part {
    /// The address of a server.
    pub fn url(&self) -> &str {
        &self.ready
    }

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
        self.has_ended().await;
    }

    /// Waits until it has ended, and well.
    pub async fn has_ended(&mut self) {
        let mut status = None;
        eventually("the part has drained", Duration::from_secs(60), || {
            status = self.child.try_wait().expect("it can be asked for");
            std::future::ready(status)
        })
        .await;
        assert!(status.is_some_and(|status| status.success()), "{status:?}: {}", self.log());
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it can be waited for");
    }

    /// Starts it again, after it has ended; false when it cannot be, as for want of what it needs.
    pub fn start_again(&mut self) -> bool {
        let Some((child, ready)) = launch(&mut self.command) else { return false };
        (self.child, self.ready) = (child, ready);
        true
    }

    /// Whether it has ended, when nobody told it to.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.runs() {
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- a part said:\n{}", self.log());
        }
    }
}
