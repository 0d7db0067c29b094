//! Writing bundles, entry by entry.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::EntryType;

use super::entry::{self, BLOCK_BYTES, Meta};
use super::sparse::{Segment, real_bytes};

/// Fast, and nearly as small as the default for what agents leave behind.
const LEVEL: Compression = Compression::fast();

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// A bundle being written; every name is put below its top-level directory.
pub struct Writer<W: Write> {
    out: GzEncoder<W>,
    top: Vec<u8>,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a bundle. The directory at its top gets `mode` and `mtime` (seconds).
    pub fn new(out: W, top: &str, mode: u32, mtime: i64) -> io::Result<Self> {
        let out = GzEncoder::new(out, LEVEL);
        let mut writer = Self { out, top: top.as_bytes().to_vec(), buffer: vec![0; BUFFER_BYTES] };
        writer.directory(b"", mode, mtime)?;
        Ok(writer)
    }

    /// Adds a directory; the empty name is the top itself.
    pub fn directory(&mut self, name: &[u8], mode: u32, mtime: i64) -> io::Result<()> {
        let meta = Meta { kind: EntryType::Directory, mode, mtime, size: 0 };
        let mut name = self.below_top(name);
        name.push(b'/');
        entry::write(&mut self.out, meta, &name, None, None)
    }

    /// Adds a file of exactly `size` bytes. A source that is shorter is padded with zeros, one
    /// that is longer is cut: the rest of the bundle must stay readable. Says whether it was
    /// shorter.
    pub fn file(
        &mut self,
        name: &[u8],
        mode: u32,
        mtime: i64,
        size: u64,
        data: &mut dyn Read,
    ) -> io::Result<bool> {
        let mut exact = Exact { data, missing: size, padded: false };
        let whole = [Segment { offset: 0, length: size }];
        self.segments(name, mode, mtime, size, &whole, &mut exact)?;
        Ok(exact.padded)
    }

    /// Adds a file of which only some segments hold data; `data` gives exactly theirs.
    pub(super) fn segments(
        &mut self,
        name: &[u8],
        mode: u32,
        mtime: i64,
        size: u64,
        segments: &[Segment],
        data: &mut dyn Read,
    ) -> io::Result<()> {
        let stored = real_bytes(segments);
        let holes = (stored < size).then_some((segments, size));
        let kind = if holes.is_some() { EntryType::GNUSparse } else { EntryType::Regular };
        let meta = Meta { kind, mode, mtime, size: stored };
        let name = self.below_top(name);
        entry::write(&mut self.out, meta, &name, None, holes)?;
        let mut missing = stored;
        while missing > 0 {
            let room = usize::try_from(missing).unwrap_or(usize::MAX).min(BUFFER_BYTES);
            let count = data.read(&mut self.buffer[..room])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.out.write_all(&self.buffer[..count])?;
            missing -= count as u64;
        }
        entry::pad(&mut self.out, stored)
    }

    /// Adds a symbolic link with its target to the byte.
    pub fn symlink(&mut self, name: &[u8], target: &[u8], mtime: i64) -> io::Result<()> {
        let meta = Meta { kind: EntryType::Symlink, mode: 0o777, mtime, size: 0 };
        let name = self.below_top(name);
        entry::write(&mut self.out, meta, &name, Some(target), None)
    }

    /// Adds a further name of a file that is in the bundle already.
    pub fn hard_link(
        &mut self,
        name: &[u8],
        first: &[u8],
        mode: u32,
        mtime: i64,
    ) -> io::Result<()> {
        let meta = Meta { kind: EntryType::Link, mode, mtime, size: 0 };
        let (name, first) = (self.below_top(name), self.below_top(first));
        entry::write(&mut self.out, meta, &name, Some(&first), None)
    }

    /// Ends the bundle and gives the output back, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK_BYTES])?;
        let mut out = self.out.finish()?;
        out.flush()?;
        Ok(out)
    }

    fn below_top(&self, name: &[u8]) -> Vec<u8> {
        let mut full = self.top.clone();
        if !name.is_empty() {
            full.push(b'/');
            full.extend_from_slice(name);
        }
        full
    }
}

/// Gives exactly so many bytes, whatever the source does meanwhile.
struct Exact<'a> {
    data: &'a mut dyn Read,
    missing: u64,
    padded: bool,
}

impl Read for Exact<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.missing).unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 {
            return Ok(0);
        }
        let mut read = if self.padded { 0 } else { self.data.read(&mut buffer[..room])? };
        if read == 0 {
            self.padded = true;
            buffer[..room].fill(0);
            read = room;
        }
        self.missing -= read as u64;
        Ok(read)
    }
}
