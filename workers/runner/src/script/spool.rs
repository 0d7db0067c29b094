//! One output stream of a script: kept in a file up to a limit, counted beyond it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

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
        let room = usize::try_from(self.limit - self.kept).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        if room == 0 {
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
