//! `agent.log`: numbered, masked, bounded lines, appended in whole batches.
//!
//! Lines of the agent come through a [`Follower`]; the platform's own words are added here. The
//! file is bounded too: beyond its budget the agent's lines are counted, not kept (all of its
//! output is in `output_artifacts`).

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use errand_runner::{LogLine, LogStream};

use crate::limit;
use crate::mask::{Edges, Mask, Seam};

mod follow;

pub(crate) use follow::Follower;

/// Longer lines are cut here, in bytes of the agent's text.
pub(crate) const LINE_LIMIT: usize = 16 * 1024;

/// How much of the agent's last words on stderr an error carries.
const STDERR_TAIL: usize = 16 * 1024;

/// The log of one attempt.
pub(crate) struct Log {
    file: File,
    mask: Mask,
    /// Of the lines that no follower reads.
    seam: Seam,
    /// Number of the last line that is in the file or in the batch.
    last: u64,
    /// Bytes and lines that are safely in the file.
    written: u64,
    flushed: u64,
    batch: Vec<u8>,
    budget: u64,
    beyond_budget: u64,
    stderr: VecDeque<String>,
    stderr_bytes: usize,
}

impl Log {
    /// Creates the file. `budget` bounds the agent's part of it, in bytes.
    pub(crate) fn create(path: &Path, mask: Mask, budget: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Self {
            file,
            mask,
            seam: Seam::default(),
            last: 0,
            written: 0,
            flushed: 0,
            batch: Vec::new(),
            budget,
            beyond_budget: 0,
            stderr: VecDeque::new(),
            stderr_bytes: 0,
        })
    }

    /// How many bytes of a line a follower has to keep: the cut, and as much as a secret that
    /// crosses it may need.
    pub(crate) fn kept_of_a_line(&self) -> usize {
        LINE_LIMIT + self.mask.longest()
    }

    /// The mask, for texts that go elsewhere.
    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Adds a line of the agent that no follower has read: its first bytes, and how long it was.
    pub(crate) fn agent(&mut self, stream: LogStream, kept: &[u8], length: u64) {
        self.seam.read(&self.mask, kept);
        let edges = self.seam.end_line(&self.mask);
        self.followed(stream, kept, length, edges);
    }

    fn followed(&mut self, stream: LogStream, kept: &[u8], length: u64, edges: Edges) {
        let fits = self.written + self.batch.len() as u64 <= self.budget;
        if !fits {
            self.beyond_budget += 1;
        }
        if fits || stream == LogStream::Stderr {
            let text = bounded(&self.mask.line_until(kept, LINE_LIMIT, edges), length);
            if stream == LogStream::Stderr {
                self.remember(&text);
            }
            if fits {
                self.push(stream, text);
            }
        }
    }

    /// Adds the platform's own words.
    pub(crate) fn platform(&mut self, text: &str) {
        let masked = self.mask.bytes_until(text.as_bytes(), LINE_LIMIT);
        let text = bounded(&masked, text.len() as u64);
        self.push(LogStream::Platform, text);
    }

    /// Says how many lines did not fit.
    pub(crate) fn close(&mut self) {
        if self.beyond_budget > 0 {
            let text = format!(
                "The log is full: {} more lines are in output_artifacts only.",
                self.beyond_budget
            );
            self.platform(&text);
        }
        self.flush();
    }

    /// Writes the batch with one call. A disk that is full must not end the run: the batch is
    /// then taken back, so that the file never ends in half a line and numbers have no gap.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if self.file.write_all(&self.batch).is_ok() {
            self.written += self.batch.len() as u64;
            self.flushed = self.last;
        } else {
            self.beyond_budget += self.last - self.flushed;
            self.last = self.flushed;
            // Failing to shorten a file on a full disk is not known to happen; a reader that
            // meets half a line stops there.
            let _ = self.file.set_len(self.written);
            let _ = io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.written));
        }
        self.batch.clear();
    }

    /// Lines in the file.
    pub(crate) fn lines(&self) -> u64 {
        self.flushed
    }

    /// The agent's last words on stderr, masked.
    pub(crate) fn stderr_tail(&self) -> String {
        Vec::from_iter(self.stderr.iter().map(String::as_str)).join("\n")
    }

    fn push(&mut self, stream: LogStream, text: String) {
        self.last += 1;
        let line = LogLine { n: self.last, at: limit::now(), stream, text };
        serde_json::to_writer(&mut self.batch, &line)
            .expect("a line is a plain struct and a vector takes every byte");
        self.batch.push(b'\n');
    }

    fn remember(&mut self, text: &str) {
        self.stderr_bytes += text.len() + 1;
        self.stderr.push_back(text.to_owned());
        while self.stderr_bytes > STDERR_TAIL && self.stderr.len() > 1 {
            if let Some(old) = self.stderr.pop_front() {
                self.stderr_bytes -= old.len() + 1;
            }
        }
    }
}

/// A masked text that was `length` bytes long before its cut.
fn bounded(masked: &[u8], length: u64) -> String {
    let mut text = String::from_utf8_lossy(masked).into_owned();
    if length > LINE_LIMIT as u64 {
        // A letter that the cut halved is no letter.
        if text.ends_with(char::REPLACEMENT_CHARACTER) {
            text.pop();
        }
        text.push_str(&format!(" [line cut: it has {length} bytes]"));
    }
    text
}

#[cfg(test)]
mod tests;
