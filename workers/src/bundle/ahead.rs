//! Reads on another thread, some chunks ahead: what unpacks a bundle and what uses the contents
//! work at the same time.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

/// Bytes a chunk; with [`CHUNKS`] of them on the way, memory stays flat.
const CHUNK_BYTES: usize = 128 * 1024;
const CHUNKS: usize = 16;

/// The end where the bytes come out.
pub(super) struct Ahead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    /// Goes back to be filled again.
    used: SyncSender<Vec<u8>>,
    chunk: Vec<u8>,
    at: usize,
}

impl Ahead {
    /// Begins to read. It goes on until the source ends or fails, or until this is dropped; the
    /// scope waits for it.
    pub(super) fn of<'scope, R: Read + Send + 'scope>(
        source: R,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<Self> {
        let (filled, chunks) = sync_channel(CHUNKS);
        let (used, empty) = sync_channel(CHUNKS + 1);
        Builder::new()
            .name("bundle-ahead".to_owned())
            .spawn_scoped(scope, move || read_on(source, &filled, &empty))?;
        Ok(Self { chunks, used, chunk: Vec::new(), at: 0 })
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            // A thread that is done has hung up: this is the end, also when it is asked again.
            let next = self.chunks.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            let used = std::mem::replace(&mut self.chunk, next);
            self.at = 0;
            // Nobody wants it any more once all was read.
            let _ = self.used.try_send(used);
        }
        let count = (&self.chunk[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
    }
}

fn read_on(
    mut source: impl Read,
    filled: &SyncSender<io::Result<Vec<u8>>>,
    empty: &Receiver<Vec<u8>>,
) {
    loop {
        let mut chunk = empty.try_recv().unwrap_or_default();
        chunk.resize(CHUNK_BYTES, 0);
        let (count, read) = fill(&mut source, &mut chunk);
        chunk.truncate(count);
        // What came before an error is good, and used before the error is told.
        if count > 0 && filled.send(Ok(chunk)).is_err() {
            return;
        }
        match read {
            Ok(()) if count == CHUNK_BYTES => {}
            Ok(()) => return,
            Err(error) => {
                // Who hung up has no use for it.
                let _ = filled.send(Err(error));
                return;
            }
        }
    }
}

/// Fills a chunk up to the end of the source or to an error, and says how far.
fn fill(source: &mut impl Read, chunk: &mut [u8]) -> (usize, io::Result<()>) {
    let mut filled = 0;
    while filled < chunk.len() {
        match source.read(&mut chunk[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}
