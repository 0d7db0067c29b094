//! Archived logs: one object of compressed JSON lines, read through and never held whole.

use std::io::{self, BufRead, BufReader};

use bytes::Bytes;
use streams::id::JobId;
use streams::log::LogLine;
use workers::store::key;

use super::page::Page;
use super::{Error, Logs, to_usize};

/// The lines that the view has, unread.
type Lines<'a> = &'a mut dyn Iterator<Item = io::Result<String>>;

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
        let count = move |lines: Lines<'_>| lines.map(|line| line.map(|_| 1)).sum();
        self.scan(job, bytes, count).await.map(Some)
    }

    /// How many of the lines that it shows have a number up to this one.
    pub(super) async fn count_archived_until(
        &self,
        workspace: &str,
        job: JobId,
        number: u64,
    ) -> Result<u64, Error> {
        let bytes = self.store.read_unknown(&key::logs(workspace, job)).await?.unwrap_or_default();
        let count = move |lines: Lines<'_>| {
            let mut seen = 0;
            for line in lines {
                if parse(&line?)?.n > number {
                    break;
                }
                seen += 1;
            }
            Ok(seen)
        };
        self.scan(job, bytes, count).await
    }

    /// Reads lines of the archive into a page.
    pub(super) async fn read_archived(
        &self,
        workspace: &str,
        job: JobId,
        skip: u64,
        take: u64,
        mut page: Page,
    ) -> Result<Page, Error> {
        let bytes = self.store.read_unknown(&key::logs(workspace, job)).await?.unwrap_or_default();
        let pick = move |lines: Lines<'_>| {
            for line in lines.skip(to_usize(skip)).take(to_usize(take)) {
                if !page.push(parse(&line?)?) {
                    break;
                }
            }
            Ok(page)
        };
        self.scan(job, bytes, pick).await
    }

    async fn scan<T: Send + 'static>(
        &self,
        job: JobId,
        bytes: Bytes,
        fold: impl FnOnce(Lines<'_>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let scanned = tokio::task::spawn_blocking(move || {
            let shown = |line: &io::Result<String>| line.as_ref().map_or(true, |it| is_shown(it));
            fold(&mut BufReader::new(unpack(&bytes)?).lines().filter(shown))
        });
        let scanned = scanned.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        scanned.map_err(|error| Error::Corrupt { job, reason: error.to_string() })
    }
}

/// Whether the view has a line. Most are told by the first letter of their text, which comes last
/// in what the platform writes; a log of a million lines is then not parsed for its end.
fn is_shown(line: &str) -> bool {
    let text = line.split_once(r#","text":""#).and_then(|(_, text)| text.bytes().next());
    match text {
        Some(first) if first.is_ascii_graphic() && first != b'\\' && first != b'"' => true,
        // One that cannot be read is met by whoever reads it.
        _ => parse(line).map_or(true, |line| !line.is_blank()),
    }
}

fn parse(line: &str) -> io::Result<LogLine> {
    serde_json::from_str(line).map_err(io::Error::from)
}

/// Opens an archive as a reader of JSON lines.
fn unpack(bytes: &[u8]) -> io::Result<zstd::Decoder<'_, &[u8]>> {
    zstd::Decoder::with_buffer(bytes)
}
