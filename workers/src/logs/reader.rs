//! Reads a job's batches back, and packs them into one object when the job is finished.

use std::io::{self, Write};
use std::sync::Arc;

use streams::broker::{self, Broker};
use streams::id::JobId;
use streams::log::{Lines, LogBatch};
use streams::snapshot::ObjectRef;
use streams::subject;
use streams::topology::StreamName;

use super::feed::{decode, to_json_lines};
use crate::bundle;
use crate::step::StepError;
use crate::store::{Store, key};

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
        let subject = subject::logs(workspace, job);
        let Some(stored) = self.0.next(StreamName::Logs, &subject, from).await? else {
            return Ok(None);
        };
        Ok(Some((stored.sequence, decode(&stored)?)))
    }

    /// Writes all lines into one zstd-compressed object of JSON lines; `None` when there is no
    /// line. Writing it again gives the same.
    pub(crate) async fn archive(
        &self,
        store: &Store,
        workspace: &str,
        job: JobId,
    ) -> Result<Option<ObjectRef>, StepError> {
        let Some(first) = self.next(workspace, job, 0).await? else { return Ok(None) };
        let (sender, mut batches) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
        let (out, chunks) = bundle::pipe();
        let packing = tokio::task::spawn_blocking(move || -> io::Result<()> {
            let mut zstd = zstd::Encoder::new(out, 0)?;
            // The archive is read by its key alone: it must tell by itself that it is whole.
            zstd.include_checksum(true)?;
            while let Some(lines) = batches.blocking_recv() {
                zstd.write_all(&lines)?;
            }
            zstd.finish()?.flush()
        });
        let feeding = async {
            let mut found = Some(first);
            while let Some((sequence, batch)) = found {
                if sender.send(lines(store, batch).await?).await.is_err() {
                    break;
                }
                found = self.next(workspace, job, sequence + 1).await?;
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

async fn lines(store: &Store, batch: LogBatch) -> Result<Vec<u8>, StepError> {
    match batch.lines {
        Lines::Inline(lines) => Ok(to_json_lines(&lines)),
        Lines::Stored(object) => {
            let bytes = store.read(&object).await?;
            let bytes = bytes.ok_or_else(|| StepError::retry(format!("no {}", object.key)))?;
            Ok(bytes.into())
        }
    }
}
