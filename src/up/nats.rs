//! A nats-server of our own: found, started on a free loopback port, watched, restarted.
//!
//! It dies with us, also by SIGKILL: it is started through [`child`], which asks the kernel for
//! that. The kernel watches the *thread* that started it, so one thread owns the server for as
//! long as the platform runs.

pub mod child;
mod find;
mod ports;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use streams::jetstream::Connect;
use tokio::sync::oneshot;

pub use find::{Found, INSTALL, find};

/// How long the server may take until it listens; a large store is read first.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long it may take to write what it holds; then it is killed, which loses nothing either.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Bytes that the streams may come to. The server's own measure is the free disk, and it refuses
/// a stream whose limit is larger, although no stream takes its limit in advance.
pub(crate) const MAX_FILE_STORE: u64 = 1 << 40;

/// Pauses before restarts; the last one repeats.
const RESTART_AFTER: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
];

/// A server that ran so long starts its pauses anew.
const SETTLED: Duration = Duration::from_secs(60);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None is installed, or it is too old.
    #[error(transparent)]
    NotFound(#[from] find::NotFound),
    /// Its files cannot be written.
    #[error("nats-server: cannot write {}: {reason}", path.display())]
    Files {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// It cannot be started, or ended before it was ready.
    #[error("nats-server ({}) did not start: {reason}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Its last words.
        reason: String,
    },
}

/// A running server. Dropping it kills the server.
pub struct Server {
    port: u16,
    token: String,
    state: Arc<Mutex<State>>,
    ended: Option<oneshot::Receiver<()>>,
}

/// What the owner's thread and the rest share.
#[derive(Default)]
struct State {
    pid: Option<Pid>,
    stopping: bool,
}

impl Server {
    /// Starts one with its data in `dir` and waits until it accepts connections.
    pub async fn start(dir: &Path) -> Result<Self, Error> {
        let program = tokio::task::block_in_place(find)?.program;
        let token = uuid::Uuid::new_v4().simple().to_string();
        let launch = Launch { program, dir: dir.to_owned(), token: token.clone() };
        let state = Arc::<Mutex<State>>::default();
        let (ready, is_ready) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let shared = Arc::clone(&state);
        std::thread::Builder::new()
            .name("nats-server".to_owned())
            .spawn(move || {
                own(&launch, &shared, ready);
                let _ = end.send(());
            })
            .map_err(|reason| Error::Files { path: dir.to_owned(), reason })?;
        // Made before the wait, so that an abandoned start is stopped too.
        let mut server = Self { port: 0, token, state, ended: Some(ended) };
        server.port = is_ready.await.unwrap_or_else(|_| {
            Err(Error::Start { program: "nats-server".into(), reason: "its thread ended".into() })
        })?;
        Ok(server)
    }

    /// How to reach it.
    pub fn connect(&self) -> Connect {
        Connect {
            url: format!("nats://127.0.0.1:{}", self.port),
            token: Some(self.token.clone()),
            name: "errand".to_owned(),
            ..Connect::default()
        }
    }

    /// Lets it write what it holds, then kills it.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        if let Some(ended) = self.ended.take()
            && tokio::time::timeout(STOP_LIMIT, ended).await.is_err()
        {
            tracing::warn!("nats-server did not stop in time and is killed");
        }
    }

    fn signal(&self, signal: Signal) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stopping = true;
        if let Some(pid) = state.pid {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// What is started.
struct Launch {
    program: PathBuf,
    dir: PathBuf,
    token: String,
}

/// The life of the owning thread: starts the server, waits for its end, starts it again.
fn own(launch: &Launch, state: &Mutex<State>, ready: oneshot::Sender<Result<u16, Error>>) {
    let first = launch.spawn(None).and_then(|child| launch.wait_ready(child, state));
    let (mut child, port) = match first {
        Ok(started) => started,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    if ready.send(Ok(port)).is_err() {
        // Nobody waits any more; the owner's end has marked the state, or will.
        let _ = child.kill();
    }
    let mut failures = 0;
    loop {
        let since = Instant::now();
        let ended = child.wait();
        {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pid = None;
            if state.stopping {
                return;
            }
        }
        failures = if since.elapsed() > SETTLED { 0 } else { failures };
        tracing::error!(
            ended = %ended.map_or_else(|error| error.to_string(), |status: ExitStatus| status.to_string()),
            last_words = launch.last_words(),
            "nats-server ended unexpectedly and is started again"
        );
        child = loop {
            std::thread::sleep(RESTART_AFTER[failures.min(RESTART_AFTER.len() - 1)]);
            failures += 1;
            if state.lock().unwrap_or_else(PoisonError::into_inner).stopping {
                return;
            }
            match launch.spawn(Some(port)).and_then(|child| launch.wait_ready(child, state)) {
                Ok((child, _)) => break child,
                Err(error) => tracing::error!(%error, "nats-server is not back"),
            }
        };
        tracing::info!("nats-server is back");
    }
}

impl Launch {
    fn spawn(&self, port: Option<u16>) -> Result<Child, Error> {
        let failed = |reason: std::io::Error| self.failed(reason.to_string());
        ports::clear(&self.dir);
        let config = self.write_config(port)?;
        let words = self.open_words()?;
        let again = words.try_clone().map_err(failed)?;
        let own = std::env::current_exe().map_err(failed)?;
        Command::new(own)
            .args([child::COMMAND, &std::process::id().to_string()])
            .arg(self.dir.join("lock"))
            .arg(&self.program)
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(words)
            .stderr(again)
            .spawn()
            .map_err(failed)
    }

    /// Waits until the server says where it listens.
    fn wait_ready(&self, mut child: Child, state: &Mutex<State>) -> Result<(Child, u16), Error> {
        {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pid = Pid::from_child(&child).into();
            if state.stopping {
                let _ = child.kill();
            }
        }
        let since = Instant::now();
        loop {
            if let Some(port) = ports::read(&self.dir, child.id()) {
                return Ok((child, port));
            }
            let reason = match child.try_wait() {
                Ok(None) if since.elapsed() < START_LIMIT => {
                    std::thread::sleep(Duration::from_millis(3));
                    continue;
                }
                Ok(None) => format!("it was not ready within {} s", START_LIMIT.as_secs()),
                Ok(Some(status)) => format!("{status}: {}", self.last_words()),
                Err(error) => error.to_string(),
            };
            let _ = child.kill();
            let _ = child.wait();
            state.lock().unwrap_or_else(PoisonError::into_inner).pid = None;
            return Err(self.failed(reason));
        }
    }

    /// Port -1 lets the server take a free one; a restart names the one that clients know.
    fn write_config(&self, port: Option<u16>) -> Result<PathBuf, Error> {
        let path = self.dir.join("server.conf");
        let quoted = |path: &Path| serde_json::Value::from(path.display().to_string()).to_string();
        let text = format!(
            "# Written by errand at each start.\n\
             host: 127.0.0.1\n\
             port: {}\n\
             authorization {{ token: \"{}\" }}\n\
             ports_file_dir: {}\n\
             jetstream {{ store_dir: {}, sync_interval: 10s, max_file_store: {MAX_FILE_STORE} }}\n",
            port.map_or_else(|| "-1".to_owned(), |port| port.to_string()),
            self.token,
            quoted(&self.dir),
            quoted(&self.dir),
        );
        let write = || {
            let mut options = std::fs::File::options();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())
        };
        match write() {
            Ok(()) => Ok(path),
            Err(reason) => Err(Error::Files { path, reason }),
        }
    }

    fn words_path(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// Begun anew at each start, so that it stays small and its end is about this start.
    fn open_words(&self) -> Result<std::fs::File, Error> {
        let path = self.words_path();
        std::fs::File::create(&path).map_err(|reason| Error::Files { path, reason })
    }

    /// The last error that the server wrote, or its last line.
    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.words_path()).unwrap_or_default();
        let error =
            text.lines().rev().find(|line| line.contains("[FTL]") || line.contains("[ERR]"));
        let line = error.or_else(|| text.lines().next_back());
        line.unwrap_or("it said nothing").trim().to_owned()
    }

    fn failed(&self, reason: String) -> Error {
        Error::Start { program: self.program.clone(), reason }
    }
}

#[cfg(test)]
mod tests;
