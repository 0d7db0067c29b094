//! Brings the lines of one attempt into the stream, each once and in order.
//!
//! The stream is the memory: its last batch says how far the file was read and which number
//! comes next. Each batch is stored only behind exactly the one before it, so a worker that
//! comes back, and one that wrongly thinks that it is still in charge, can do no harm.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use errand_runner::{LogStream as RunStream, run_dir};
use streams::broker::{self, Broker, Expect, Publication, Published, Stored};
use streams::envelope::MAX_PAYLOAD_BYTES;
use streams::id::{Attempt, JobId};
use streams::log::{INLINE_LIMIT_BYTES, Lines, LogBatch, LogLine, LogStream};
use streams::subject;
use streams::topology::StreamName;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::store::{self, Store, key};

/// Bytes of the file that go into one batch in the stream; the JSON around them fits below the
/// limit of a message.
const BATCH_BYTES: usize = 32 * 1024;

/// Bytes of the file that go into one chunk in the store.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Why lines could not be passed on now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    /// The file.
    #[error("agent.log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The queue.
    #[error(transparent)]
    Broker(#[from] broker::Error),
    /// The store, for chunks.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Another worker writes this job's log.
    #[error("another worker writes this log")]
    Fenced,
}

/// A stream that is full must not keep an ended run from being told of: what is then missing in
/// the log is in the results.
pub(crate) fn give_up_if_full(passed: Result<(), FeedError>) -> Result<(), FeedError> {
    match passed {
        Err(FeedError::Broker(broker::Error::Full(stream))) => {
            tracing::error!(stream, "the end of the log is given up");
            Ok(())
        }
        passed => passed,
    }
}

/// The log of one attempt on its way.
pub struct LogFeed {
    broker: Arc<dyn Broker>,
    store: Store,
    job: JobId,
    workspace: String,
    attempt: Attempt,
    /// Sequence in the stream of the last batch; 0 before the first.
    last: u64,
    /// Number of the next line.
    next: u64,
    /// How far the file is passed on.
    offset: u64,
    total_bytes: u64,
}

impl LogFeed {
    /// Goes on where the stream says that the attempt's log ends.
    pub(crate) async fn resume(
        broker: Arc<dyn Broker>,
        store: Store,
        workspace: &str,
        job: JobId,
        attempt: Attempt,
    ) -> Result<Self, FeedError> {
        let workspace = workspace.to_owned();
        let mut feed = Self {
            broker,
            store,
            job,
            workspace,
            attempt,
            last: 0,
            next: 1,
            offset: 0,
            total_bytes: 0,
        };
        feed.catch_up().await?;
        Ok(feed)
    }

    /// Passes on every whole line that the file has beyond what was passed on.
    pub(crate) async fn pump(&mut self, file: &Path) -> Result<(), FeedError> {
        let mut file = match run_dir::open_regular(file) {
            Ok(file) => File::from_std(file),
            // The agent may have removed it, or put something else in its place: then that is
            // all there is.
            Err(_) => return Ok(()),
        };
        loop {
            let limit =
                if self.total_bytes < INLINE_LIMIT_BYTES { BATCH_BYTES } else { CHUNK_BYTES };
            file.seek(SeekFrom::Start(self.offset)).await?;
            let bytes = read_lines(&mut file, limit).await?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.publish(&bytes).await?;
        }
    }

    async fn publish(&mut self, bytes: &[u8]) -> Result<(), FeedError> {
        let lines = self.parse(bytes);
        let (first, count) = (self.next, lines.len() as u64);
        let blank = lines.iter().filter(|line| line.is_blank()).count() as u64;
        let total_bytes = self.total_bytes + bytes.len() as u64;
        let offset = self.offset + bytes.len() as u64;
        // One line alone may be too long for a message.
        let small = bytes.len() <= MAX_PAYLOAD_BYTES * 3 / 4;
        let lines = if small && self.total_bytes < INLINE_LIMIT_BYTES {
            Lines::Inline(lines)
        } else {
            let key = key::log_chunk(&self.workspace, self.job, self.attempt, first, offset);
            Lines::Stored(self.store.put(&key, to_json_lines(&lines).into()).await?)
        };
        let batch = LogBatch {
            v: 1,
            job: self.job,
            workspace: self.workspace.clone(),
            attempt: self.attempt,
            first,
            count,
            blank: Some(blank),
            prev: self.last,
            offset,
            total_bytes,
            lines,
        };
        let publication = Publication {
            subject: subject::logs(&self.workspace, self.job),
            payload: serde_json::to_vec(&batch).map_err(io::Error::from)?.into(),
            message_id: None,
            expect: if self.last == 0 { Expect::Empty } else { Expect::Last(self.last) },
            traceparent: None,
        };
        match self.broker.publish(publication).await? {
            Published::Stored(sequence) => {
                self.last = sequence;
                (self.next, self.offset, self.total_bytes) = (first + count, offset, total_bytes);
                Ok(())
            }
            // Either our own batch was stored and its confirmation lost, or somebody else writes.
            Published::Exists => {
                let before = (self.last, self.offset);
                self.catch_up().await?;
                if (self.last, self.offset) == before { Err(FeedError::Fenced) } else { Ok(()) }
            }
        }
    }

    /// Takes over what the last batch in the stream says.
    async fn catch_up(&mut self) -> Result<(), FeedError> {
        let subject = subject::logs(&self.workspace, self.job);
        let Some(stored) = self.broker.last(StreamName::Logs, &subject).await? else {
            // Nothing yet, or somebody has purged the stream: the next batch is the first there.
            self.last = 0;
            return Ok(());
        };
        let batch = decode(&stored)?;
        self.last = stored.sequence;
        self.next = batch.first + batch.count;
        self.total_bytes = batch.total_bytes;
        self.offset = match batch.attempt.cmp(&self.attempt) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => batch.offset,
            std::cmp::Ordering::Greater => return Err(FeedError::Fenced),
        };
        Ok(())
    }

    /// Numbers the runner's lines through the job. A line that is none (a disk that was full,
    /// a hand that edited) is kept as text rather than lost.
    fn parse(&self, bytes: &[u8]) -> Vec<LogLine> {
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .zip(self.next..)
            .map(|(line, n)| match serde_json::from_slice::<errand_runner::LogLine>(line) {
                Ok(line) => {
                    LogLine { n, at: line.at, stream: stream(line.stream), text: line.text }
                }
                Err(_) => LogLine {
                    n,
                    at: jiff::Timestamp::now(),
                    stream: LogStream::Platform,
                    text: String::from_utf8_lossy(line).into_owned(),
                },
            })
            .collect()
    }
}

/// Reads a batch.
pub(super) fn decode(stored: &Stored) -> Result<LogBatch, broker::Error> {
    serde_json::from_slice(&stored.payload).map_err(|error| broker::Error::Refused {
        what: format!("log batch {} of {}", stored.sequence, stored.subject),
        reason: error.to_string(),
    })
}

/// Lines as they stand in a chunk and in the archive.
pub(super) fn to_json_lines(lines: &[LogLine]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        // Numbers, times and text always have a JSON form.
        let _ = serde_json::to_writer(&mut bytes, line);
        bytes.push(b'\n');
    }
    bytes
}

const fn stream(stream: RunStream) -> LogStream {
    match stream {
        RunStream::Stdout => LogStream::Stdout,
        RunStream::Stderr => LogStream::Stderr,
        RunStream::Platform => LogStream::Platform,
    }
}

/// About `limit` bytes of whole lines; more only when one line alone is longer.
async fn read_lines(file: &mut File, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut wanted = limit;
    loop {
        let read = (&mut *file).take((wanted - bytes.len()) as u64).read_to_end(&mut bytes).await?;
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(end + 1);
            return Ok(bytes);
        }
        if read == 0 {
            return Ok(Vec::new());
        }
        wanted += limit;
    }
}
