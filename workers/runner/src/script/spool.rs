//! One output stream of a script: kept in a file up to a limit, counted beyond it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// A line that crosses the limit is kept whole, unless it goes on for so many bytes: half a secret
/// in half a line is one that no mask knows. The log shows less of a line than that.
const LINE_BYTES: u64 = 64 * 1024;

/// A stream on its way into a file.
pub(super) struct Spool {
    file: File,
    limit: u64,
    kept: u64,
    total: u64,
    last: u8,
    disk_full: bool,
}

impl Spool {
    /// Creates the file.
    pub(super) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            limit,
            kept: 0,
            total: 0,
            last: b'\n',
            disk_full: false,
        })
    }

    /// Takes the next bytes. A full disk only stops the keeping: the script must not block.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.disk_full {
            self.show_life();
            return;
        }
        let bytes = self.to_keep(bytes);
        if bytes.is_empty() {
            self.show_life();
        }
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.kept += bytes.len() as u64;
                self.last = bytes.last().copied().unwrap_or(self.last);
            }
            Err(_) => self.disk_full = true,
        }
    }

    /// What is kept of the next bytes.
    fn to_keep<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let until = |limit: u64| {
            let room = usize::try_from(limit.saturating_sub(self.kept)).unwrap_or(usize::MAX);
            bytes.len().min(room)
        };
        let within = until(self.limit);
        if bytes[..within].last().unwrap_or(&self.last) == &b'\n' {
            return &bytes[..within];
        }
        let most = &bytes[..until(self.limit.saturating_add(LINE_BYTES))];
        let end = most[within..].iter().position(|byte| *byte == b'\n');
        end.map_or(most, |end| &most[..=within + end])
    }

    /// Whoever looks for signs of life must see that the script goes on, though nothing is kept.
    fn show_life(&self) {
        // What cannot be shown makes the script look idle; nothing better can be done about it.
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// Bytes that the script wrote.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Says in the file how much was cut, if anything; returns whether the disk was full.
    pub(super) fn close(mut self) -> bool {
        if self.total > self.kept && !self.disk_full {
            let newline = if self.last == b'\n' { "" } else { "\n" };
            let marker =
                format!("{newline}[output cut: {} of {} bytes kept]\n", self.kept, self.total);
            self.disk_full = self.file.write_all(marker.as_bytes()).is_err();
        }
        self.disk_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: u64, pieces: &[&[u8]]) -> String {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("spool");
        let mut spool = Spool::create(&path, limit).expect("room on the disk");
        for piece in pieces {
            spool.take(piece);
        }
        assert!(!spool.close());
        std::fs::read_to_string(path).expect("it is text")
    }

    #[test]
    fn the_line_that_crosses_the_limit_is_the_last_and_whole() {
        let check = |limit, expected: &str| {
            assert_eq!(kept(limit, &[b"one\ntwo\nth", b"ree\nfo", b"ur\n"]), expected, "{limit}");
        };
        check(100, "one\ntwo\nthree\nfour\n");
        check(19, "one\ntwo\nthree\nfour\n");
        check(18, "one\ntwo\nthree\nfour\n");
        check(14, "one\ntwo\nthree\n[output cut: 14 of 19 bytes kept]\n");
        check(9, "one\ntwo\nthree\n[output cut: 14 of 19 bytes kept]\n");
        check(8, "one\ntwo\n[output cut: 8 of 19 bytes kept]\n");
        check(1, "one\n[output cut: 4 of 19 bytes kept]\n");
        check(0, "[output cut: 0 of 19 bytes kept]\n");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let piece = [b'x'; 50_000];
        let most = 10 + LINE_BYTES;
        let expected = "x".repeat(usize::try_from(most).expect("it is little"));
        let expected = format!("{expected}\n[output cut: {most} of 150002 bytes kept]\n");
        assert_eq!(kept(10, &[&piece, &piece, &piece, b"\nx"]), expected);
    }
}
