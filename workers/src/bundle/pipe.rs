//! A bounded pipe from a blocking writer to an asynchronous upload.

use std::io::{self, Write};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::store::{Error, Upload};

/// Bytes a chunk; with [`CHUNKS`] of them on the way, memory stays flat. They are half a part of
/// an upload, so that the writer goes on while a part is sent.
const CHUNK_BYTES: usize = 256 * 1024;
const CHUNKS: usize = 10;

/// The writing end; used on a thread that may block.
pub struct PipeWriter {
    chunk: Vec<u8>,
    sender: mpsc::Sender<Bytes>,
}

/// A pipe. The reading end sees the end when the writer was flushed and dropped.
pub fn pipe() -> (PipeWriter, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    (PipeWriter { chunk: Vec::with_capacity(CHUNK_BYTES), sender }, receiver)
}

/// Sends everything that comes out of a pipe into an upload.
pub async fn send(mut receiver: mpsc::Receiver<Bytes>, upload: &mut Upload) -> Result<(), Error> {
    while let Some(chunk) = receiver.recv().await {
        upload.write(&chunk).await?;
    }
    Ok(())
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CHUNK_BYTES - self.chunk.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.chunk.extend_from_slice(taken);
        if self.chunk.len() == CHUNK_BYTES {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        self.sender.blocking_send(chunk.into()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
