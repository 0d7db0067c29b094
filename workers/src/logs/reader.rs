//! Reads a job's batches back, and packs them into one object when the job is finished.

use std::io::{self, Write};
use std::sync::Arc;

use streams::broker::{self, Broker, Stored};
use streams::id::JobId;
use streams::log::{Lines, LogBatch, LogLine, LogStream};
use streams::snapshot::ObjectRef;
use streams::subject;
use streams::topology::StreamName;

use super::feed::{decode, to_json_lines};
use crate::bundle;
use crate::step::StepError;
use crate::store::{Store, key};

/// A frame ends after so many bytes of lines: whoever reads a page of a long log unpacks no more.
const FRAME_BYTES: usize = 1024 * 1024;

/// Reads the `LOGS` stream.
#[derive(Clone)]
pub struct LogReader(Arc<dyn Broker>);

impl LogReader {
    /// Reads by means of a broker.
    pub fn new(broker: Arc<dyn Broker>) -> Self {
        Self(broker)
    }

    /// The first batch at or after a sequence, with its own.
    pub async fn next(
        &self,
        workspace: &str,
        job: JobId,
        from: u64,
    ) -> Result<Option<(u64, LogBatch)>, broker::Error> {
        let Some(stored) = self.stored(workspace, job, from).await? else { return Ok(None) };
        Ok(Some((stored.sequence, decode(&stored)?)))
    }

    async fn stored(
        &self,
        workspace: &str,
        job: JobId,
        from: u64,
    ) -> Result<Option<Stored>, broker::Error> {
        self.0.next(StreamName::Logs, &subject::logs(workspace, job), from).await
    }

    /// Writes all lines into one zstd-compressed object of JSON lines; `None` when there is no
    /// line. It is made of frames of whole lines, each of which can be unpacked by itself. Writing it
    /// again gives the same. Lines that the store has lost are told of in one line.
    pub async fn archive(
        &self,
        store: &Store,
        workspace: &str,
        job: JobId,
    ) -> Result<Option<ObjectRef>, StepError> {
        let Some(first) = self.stored(workspace, job, 0).await? else { return Ok(None) };
        let (sender, mut batches) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
        let (out, chunks) = bundle::pipe();
        let packing = tokio::task::spawn_blocking(move || -> io::Result<()> {
            let mut zstd = frame(out)?;
            let mut bytes = 0;
            while let Some(lines) = batches.blocking_recv() {
                if bytes >= FRAME_BYTES {
                    zstd = frame(zstd.finish()?)?;
                    bytes = 0;
                }
                zstd.write_all(&lines)?;
                bytes += lines.len();
            }
            zstd.finish()?.flush()
        });
        let feeding = async {
            let mut found = Some(first);
            while let Some(stored) = found {
                if sender.send(lines(store, &stored).await?).await.is_err() {
                    break;
                }
                found = self.stored(workspace, job, stored.sequence + 1).await?;
            }
            drop(sender);
            Ok::<(), StepError>(())
        };
        let mut upload = store.upload(&key::logs(workspace, job));
        let sending = async { Ok(bundle::send(chunks, &mut upload).await?) };
        let done = tokio::try_join!(feeding, sending);
        let packed = packing.await.map_err(StepError::retry)?;
        if let Err(error) = done.and(packed.map_err(StepError::retry).map(|()| ((), ()))) {
            upload.abort().await;
            return Err(error);
        }
        Ok(Some(upload.finish().await?))
    }
}

/// Begins a frame. It is read by its key alone: it must tell by itself that it is whole.
fn frame<W: Write>(out: W) -> io::Result<zstd::Encoder<'static, W>> {
    let mut zstd = zstd::Encoder::new(out, 0)?;
    zstd.include_checksum(true)?;
    Ok(zstd)
}

async fn lines(store: &Store, stored: &Stored) -> Result<Vec<u8>, StepError> {
    let batch = decode(stored)?;
    match batch.lines {
        Lines::Inline(lines) => Ok(to_json_lines(&lines)),
        Lines::Stored(object) => match store.read(&object).await? {
            Some(bytes) => Ok(bytes.into()),
            // What a store has lost does not come back.
            None => {
                let (lines, key) = (batch.count, object.key);
                tracing::error!(lines, key, "lines of a log are lost");
                let text = format!("{lines} lines are lost: {key} is not in the object store.");
                let (n, stream) = (batch.first, LogStream::Platform);
                Ok(to_json_lines(&[LogLine { n, at: stored.at, stream, text }]))
            }
        },
    }
}
