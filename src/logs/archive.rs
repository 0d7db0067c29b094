//! Archived logs: one object of compressed JSON lines, read through and never held whole.

use std::io::{self, BufRead, BufReader};

use bytes::Bytes;
use streams::id::JobId;
use streams::log::LogLine;
use workers::store::key;

use super::{Error, Logs, is_visible, to_usize};

impl Logs {
    /// How many lines the archive shows; `None` without one.
    pub(super) async fn count_archived(
        &self,
        workspace: &str,
        job: JobId,
    ) -> Result<Option<u64>, Error> {
        let Some(bytes) = self.store.read_unknown(&key::logs(workspace, job)).await? else {
            return Ok(None);
        };
        let count = move |lines: &mut dyn Iterator<Item = io::Result<LogLine>>| {
            lines.map(|line| line.map(|_| 1)).sum()
        };
        self.scan(job, bytes, count).await.map(Some)
    }

    /// Reads lines of the archive.
    pub(super) async fn read_archived(
        &self,
        workspace: &str,
        job: JobId,
        skip: u64,
        take: u64,
    ) -> Result<Vec<LogLine>, Error> {
        let bytes = self.store.read_unknown(&key::logs(workspace, job)).await?.unwrap_or_default();
        let pick = move |lines: &mut dyn Iterator<Item = io::Result<LogLine>>| {
            lines.skip(to_usize(skip)).take(to_usize(take)).collect()
        };
        self.scan(job, bytes, pick).await
    }

    async fn scan<T: Send + 'static>(
        &self,
        job: JobId,
        bytes: Bytes,
        fold: impl FnOnce(&mut dyn Iterator<Item = io::Result<LogLine>>) -> io::Result<T>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        let scanned = tokio::task::spawn_blocking(move || {
            let lines = BufReader::new(unpack(&bytes)?).lines().map(|line| {
                line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::from))
            });
            let visible = |line: &io::Result<LogLine>| line.as_ref().map_or(true, is_visible);
            fold(&mut lines.filter(visible))
        });
        let scanned = scanned.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        scanned.map_err(|error| Error::Corrupt { job, reason: error.to_string() })
    }
}

/// Opens an archive as a reader of JSON lines.
fn unpack(bytes: &[u8]) -> io::Result<zstd::Decoder<'_, &[u8]>> {
    zstd::Decoder::with_buffer(bytes)
}
