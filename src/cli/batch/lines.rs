//! The lines of a batch's file, one at a time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};

/// Bytes of a line at most; no server takes more.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How much there is in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of the last line that is not blank.
    pub(super) last: u32,
    /// How many such lines there are.
    pub(super) lines: u64,
}

/// A file that is read line by line.
pub(super) struct Lines {
    file: BufReader<File>,
    shown: String,
    number: u32,
}

impl Lines {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        Ok(Self { file: BufReader::new(file), shown, number: 0 })
    }

    /// The next line that is not blank, and its number; blank lines have theirs, too.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<(u32, Vec<u8>)>> {
        loop {
            let mut line = Vec::new();
            let read = self.read(&mut line).with_context(|| format!("cannot read {}", self.shown));
            if read? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if line.len() as u64 > LONGEST {
                let (shown, number) = (&self.shown, self.number);
                bail!("line {number} of {shown} has more than {LONGEST} bytes; shorten it");
            }
            let text = line.trim_ascii();
            if !text.is_empty() {
                return Ok(Some((self.number, text.to_vec())));
            }
        }
    }

    fn read(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        (&mut self.file).take(LONGEST + 1).read_until(b'\n', line)
    }

    /// How much there is in a file.
    pub(super) fn extent(path: &Path) -> anyhow::Result<Extent> {
        let mut lines = Self::open(path)?;
        let mut extent = Extent::default();
        while let Some((number, _)) = lines.next()? {
            extent = Extent { last: number, lines: extent.lines + 1 };
        }
        Ok(extent)
    }
}

#[cfg(test)]
mod tests;
