//! `run.json`: how other programs join a running platform. There is one while it runs.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use streams::jetstream::Connect;
use workers::store::StoreConfig;

use super::lock::DataDir;

/// Its name in the data directory.
const NAME: &str = "run.json";

/// What it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the interface document names the fields")]
pub struct Ready {
    pub pid: u32,
    pub http: String,
    pub nats: Nats,
    pub s3: S3,
}

/// How to reach the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nats {
    pub url: String,
    pub token: Option<String>,
}

/// How to reach the object store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct S3 {
    pub endpoint: String,
    pub bucket: String,
    pub access_key: String,
    pub secret_key: String,
}

impl Ready {
    /// Reads the file of a running platform.
    pub fn read(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join(NAME);
        let text = std::fs::read(&path).with_context(|| {
            format!("no platform runs in {}: cannot read {}", data_dir.display(), path.display())
        })?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// How to reach its queue.
    pub fn connect(&self) -> Connect {
        let Nats { url, token } = self.nats.clone();
        Connect { url, token, name: "errand".to_owned(), ..Connect::default() }
    }

    /// How to reach its object store.
    pub fn store(&self) -> StoreConfig {
        let S3 { endpoint, bucket, access_key, secret_key } = self.s3.clone();
        StoreConfig { endpoint, bucket, access_key, secret_key, region: "us-east-1".to_owned() }
    }
}

/// The file; removed when this is dropped.
pub(super) struct RunFile(PathBuf);

impl RunFile {
    /// Writes it whole or not at all, readable by its owner only: it holds credentials.
    pub(super) fn write(data: &DataDir, ready: &Ready) -> anyhow::Result<Self> {
        let path = data.path().join(NAME);
        let temporary = path.with_extension("json.new");
        let write = || -> std::io::Result<()> {
            // One that a killed platform left might have another mode.
            let _ = std::fs::remove_file(&temporary);
            let mut file = std::fs::File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&temporary)?;
            serde_json::to_writer_pretty(&mut file, ready)?;
            file.write_all(b"\n")?;
            std::fs::rename(&temporary, &path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
