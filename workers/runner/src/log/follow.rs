//! Follows a growing file and turns it into log lines.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

use errand_runner::LogStream;
use errand_runner::run_dir::open_regular;

use super::Log;
use crate::mask::Seam;

/// One followed file. Once opened it stays open, so deleting it loses nothing.
pub(crate) struct Follower {
    path: PathBuf,
    stream: LogStream,
    file: Option<File>,
    /// The first bytes of the unfinished line, and how long it is by now.
    line: Vec<u8>,
    length: u64,
    /// Reads all of the line, so that no secret hides on a border of lines.
    seam: Seam,
}

impl Follower {
    /// Bytes read before the supervisor looks at its clock again.
    pub(crate) const CHUNK: usize = 64 * 1024;

    /// Names the file; it need not exist yet.
    pub(crate) fn new(path: PathBuf, stream: LogStream) -> Self {
        Self { path, stream, file: None, line: Vec::new(), length: 0, seam: Seam::default() }
    }

    /// Where the lines come from.
    pub(crate) fn stream(&self) -> LogStream {
        self.stream
    }

    /// Whether the file was ever there.
    pub(crate) fn found(&self) -> bool {
        self.file.is_some()
    }

    /// Logs the lines that have become complete, up to a chunk's worth; says how many bytes were
    /// read. A file that cannot be read now is tried again later.
    pub(crate) fn follow(&mut self, log: &mut Log, buffer: &mut Vec<u8>) -> usize {
        let Some(file) = self.file() else {
            return 0;
        };
        buffer.resize(Self::CHUNK, 0);
        let count = read_some(file, buffer).unwrap_or_default();
        self.take(&buffer[..count], log);
        count
    }

    /// Logs what is left when nobody writes any more, as long as it `may_go_on` after so many
    /// bytes; says how many bytes were left out. An unfinished line is then left out as well: it
    /// might end in half a secret, which no mask knows.
    pub(crate) fn finish(
        &mut self,
        log: &mut Log,
        buffer: &mut Vec<u8>,
        may_go_on: impl Fn(u64) -> bool,
    ) -> u64 {
        let mut read = 0;
        while may_go_on(read) {
            let count = self.follow(log, buffer);
            log.flush();
            if count == 0 {
                self.end(log);
                return 0;
            }
            read += count as u64;
        }
        let unread = self.unread();
        if unread == 0 {
            self.end(log);
            return 0;
        }
        let left = unread + self.length;
        self.line.clear();
        self.length = 0;
        left
    }

    fn file(&mut self) -> Option<&mut File> {
        if self.file.is_none() {
            self.file = open_regular(&self.path).ok();
        }
        self.file.as_mut()
    }

    fn unread(&mut self) -> u64 {
        let Some(file) = self.file() else { return 0 };
        let length = file.metadata().map_or(0, |it| it.len());
        length.saturating_sub(file.stream_position().unwrap_or_default())
    }

    /// Logs a last line that nothing ended.
    pub(crate) fn end(&mut self, log: &mut Log) {
        if self.length > 0 {
            self.end_line(log);
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn take(&mut self, bytes: &[u8], log: &mut Log) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = log.kept_of_a_line().saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.length += piece.len() as u64;
            self.seam.read(log.mask(), piece);
            if pieces.peek().is_some() {
                self.end_line(log);
            }
        }
    }

    fn end_line(&mut self, log: &mut Log) {
        if self.length == self.line.len() as u64 && self.line.ends_with(b"\r") {
            self.line.pop();
            self.length -= 1;
        }
        let edges = self.seam.end_line(log.mask());
        log.followed(self.stream, &self.line, self.length, edges);
        self.line.clear();
        self.length = 0;
    }
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
