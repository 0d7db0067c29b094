//! Files with holes: where their data is, and the data itself. A hole is never read, so a file of
//! terabytes that holds nothing costs nothing.

use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};

/// So many segments are told apart; in a file with more, the holes behind them are read as zeros.
const MOST: usize = 1 << 16;

/// A stretch of a file that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where it begins.
    pub(super) offset: u64,
    /// Its bytes.
    pub(super) length: u64,
}

/// Where the data of a file is; one segment for a file without holes.
pub(super) fn segments(file: &File, size: u64) -> Vec<Segment> {
    let whole = || vec![Segment { offset: 0, length: size }];
    let mut found = Vec::new();
    let mut at = 0;
    while at < size {
        let offset = match seek(file, SeekFrom::Data(at)) {
            Ok(offset) if offset < size => offset,
            Ok(_) | Err(Errno::NXIO) => break,
            // A file system that does not say.
            Err(_) => return whole(),
        };
        let more = found.len() + 1 < MOST;
        at = match seek(file, SeekFrom::Hole(offset)) {
            Ok(hole) if more => hole.min(size),
            _ => size,
        };
        found.push(Segment { offset, length: at - offset });
    }
    found
}

/// All bytes of segments.
pub(super) fn real_bytes(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.length).sum()
}

/// Reads the data of a file, segment by segment, whatever becomes of the file meanwhile: what is
/// gone or cannot be read is zeros, so that what follows in the bundle stays where it belongs.
pub(super) struct Data<'a, F> {
    file: &'a File,
    segments: std::slice::Iter<'a, Segment>,
    now: Segment,
    /// Why something could not be read.
    pub(super) failed: Option<io::Error>,
    /// Hears of everything that is read, and where.
    hear: F,
}

impl<'a, F: FnMut(u64, &[u8])> Data<'a, F> {
    pub(super) fn new(file: &'a File, segments: &'a [Segment], hear: F) -> Self {
        Self {
            file,
            segments: segments.iter(),
            now: Segment { offset: 0, length: 0 },
            failed: None,
            hear,
        }
    }
}

impl<F: FnMut(u64, &[u8])> Read for Data<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.now.length == 0 {
            match self.segments.next() {
                Some(next) => self.now = *next,
                None => return Ok(0),
            }
        }
        let room = usize::try_from(self.now.length).unwrap_or(usize::MAX).min(buffer.len());
        let read = pread(self.file, &mut buffer[..room], self.now.offset);
        let mut count = read.unwrap_or_else(|error| {
            self.failed = Some(error.into());
            0
        });
        if count == 0 {
            buffer[..room].fill(0);
            count = room;
        }
        (self.hear)(self.now.offset, &buffer[..count]);
        self.now.offset += count as u64;
        self.now.length -= count as u64;
        Ok(count)
    }
}

/// Reads a file with its holes, from its data alone.
pub(super) struct Expanded<'a> {
    data: &'a mut dyn Read,
    segments: std::slice::Iter<'a, Segment>,
    next: Option<Segment>,
    at: u64,
    size: u64,
}

impl<'a> Expanded<'a> {
    pub(super) fn new(data: &'a mut dyn Read, segments: &'a [Segment], size: u64) -> Self {
        let mut segments = segments.iter();
        let next = segments.next().copied();
        Self { data, segments, next, at: 0, size }
    }
}

impl Read for Expanded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.next.is_some_and(|segment| self.at == segment.offset + segment.length) {
            self.next = self.segments.next().copied();
        }
        let (end, in_hole) = match self.next {
            Some(segment) if segment.offset <= self.at => (segment.offset + segment.length, false),
            Some(segment) => (segment.offset, true),
            None => (self.size, true),
        };
        let room = usize::try_from(end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let count = if in_hole {
            buffer[..room].fill(0);
            room
        } else {
            self.data.read(&mut buffer[..room])?
        };
        self.at += count as u64;
        Ok(count)
    }
}
