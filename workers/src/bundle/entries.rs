//! The entries of a tar, one after the other, as they are stored: long names put together, files
//! with holes by their segments. Nothing in it is believed beyond what is checked here.

use std::io::{self, Read};

use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

use super::entry::{BLOCK_BYTES, number, padding};
use super::sparse::{Segment, real_bytes};

/// Bytes of a name or of an extended header at most.
const LONG_BYTES: u64 = 1 << 20;

/// Segments of one file at most.
const SEGMENTS: usize = 1 << 20;

/// Bytes behind the last entry that are read for the sake of the checksum of the whole.
const TAIL_BYTES: u64 = 1 << 20;

/// An entry; its data is read from [`Entries`].
pub(super) struct Raw {
    pub(super) kind: EntryType,
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) mode: u32,
    pub(super) mtime: i64,
    /// Bytes that it has once it is read.
    pub(super) size: u64,
    /// Bytes of data that follow.
    pub(super) stored: u64,
    /// Where the data belongs, when there are holes between.
    pub(super) segments: Option<Vec<Segment>>,
}

/// What entries say about the one that comes after them.
#[derive(Default)]
struct Ahead {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    mtime: Option<i64>,
}

/// Reads them; as a reader it gives the data of the last one.
pub(super) struct Entries<R> {
    input: R,
    /// Bytes of data that have not been read, and of their padding.
    left: u64,
    padding: u64,
}

impl<R: Read> Entries<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, left: 0, padding: 0 }
    }

    /// The next entry; what was not read of the one before is passed over.
    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        let mut ahead = Ahead::default();
        loop {
            self.pass()?;
            let Some(header) = self.header()? else { return Ok(None) };
            let size = header_number(&header.as_old().size)?;
            let stored = u64::try_from(size).map_err(|_| damaged("a size is negative"))?;
            match header.entry_type() {
                EntryType::GNULongName => ahead.name = Some(without_end(self.long(stored)?)),
                EntryType::GNULongLink => ahead.link = Some(without_end(self.long(stored)?)),
                EntryType::XHeader => ahead.extend(&self.long(stored)?)?,
                EntryType::XGlobalHeader => drop(self.long(stored)?),
                kind => return self.entry(&header, kind, stored, ahead).map(Some),
            }
        }
    }

    fn entry(
        &mut self,
        header: &Header,
        kind: EntryType,
        stored: u64,
        ahead: Ahead,
    ) -> io::Result<Raw> {
        let stored = ahead.size.unwrap_or(stored);
        let (mut size, mut segments) = (stored, None);
        if kind == EntryType::GNUSparse {
            (size, segments) = self.holes(header, stored)?;
        }
        self.begin(stored);
        let link = ahead.link.or_else(|| header.link_name_bytes().map(|name| name.into_owned()));
        let mtime = match ahead.mtime {
            Some(mtime) => mtime,
            None => header_number(&header.as_old().mtime)?,
        };
        Ok(Raw {
            kind,
            name: ahead.name.unwrap_or_else(|| header.path_bytes().into_owned()),
            link: link.unwrap_or_default(),
            mode: header.mode()? & 0o7777,
            mtime,
            size,
            stored,
            segments,
        })
    }

    /// A header that is no block of zeros.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        if !self.block(header.as_mut_bytes())? {
            return Ok(None);
        }
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            // Reading on to the end checks the sum that gzip keeps there.
            io::copy(&mut (&mut self.input).take(TAIL_BYTES), &mut io::sink())?;
            return Ok(None);
        }
        let bytes = header.as_bytes();
        let sum = bytes[..148].iter().chain(&bytes[156..]).map(|byte| i64::from(*byte)).sum();
        // The sum's own field counts as blanks.
        if number(&header.as_old().cksum).map(|sum| sum - 8 * 32) != Some(sum) {
            return Err(damaged("the checksum of a header is wrong"));
        }
        Ok(Some(header))
    }

    /// Reads a whole block; false at the end.
    fn block(&mut self, block: &mut [u8; BLOCK_BYTES]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < block.len() {
            match self.input.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The segments of a file with holes, and the size that it has with them.
    fn holes(&mut self, header: &Header, stored: u64) -> io::Result<(u64, Option<Vec<Segment>>)> {
        let gnu = header.as_gnu().ok_or_else(|| damaged("a file with holes has no map of them"))?;
        let size = header_number(&gnu.realsize)?;
        let size = u64::try_from(size).map_err(|_| damaged("a size is negative"))?;
        let mut segments = Vec::new();
        add_segments(&mut segments, &gnu.sparse, size)?;
        let mut more = gnu.isextended[0] == 1;
        while more {
            let mut next = GnuExtSparseHeader::new();
            if !self.block(next.as_mut_bytes())? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            add_segments(&mut segments, next.sparse(), size)?;
            more = next.is_extended();
        }
        if real_bytes(&segments) != stored {
            return Err(damaged("the map of a file with holes does not fit its data"));
        }
        Ok((size, Some(segments)))
    }

    fn begin(&mut self, stored: u64) {
        (self.left, self.padding) = (stored, padding(stored) as u64);
    }

    /// The whole data of an entry that speaks of the next one.
    fn long(&mut self, stored: u64) -> io::Result<Vec<u8>> {
        if stored > LONG_BYTES {
            return Err(damaged("a name is too long"));
        }
        self.begin(stored);
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn pass(&mut self) -> io::Result<()> {
        let rest = self.left + self.padding;
        let passed = io::copy(&mut (&mut self.input).take(rest), &mut io::sink())?;
        if passed < rest {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.begin(0);
        Ok(())
    }
}

impl<R: Read> Read for Entries<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 {
            return Ok(0);
        }
        let count = self.input.read(&mut buffer[..room])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

impl Ahead {
    /// Takes what is wanted of an extended header: lines of `LENGTH KEY=VALUE`.
    fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        let line = || damaged("an extended header cannot be read");
        let mut rest = bytes;
        while !rest.is_empty() {
            let blank = rest.iter().position(|byte| *byte == b' ').ok_or_else(line)?;
            let length = std::str::from_utf8(&rest[..blank]).ok().and_then(|it| it.parse().ok());
            let (now, then) = length.and_then(|it| rest.split_at_checked(it)).ok_or_else(line)?;
            let end = now.len().saturating_sub(1);
            let pair = now.get(blank + 1..end).ok_or_else(line)?;
            let equals = pair.iter().position(|byte| *byte == b'=').ok_or_else(line)?;
            let (key, value) = (&pair[..equals], &pair[equals + 1..]);
            let text = || std::str::from_utf8(value).map_err(|_| line());
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => {
                    let size: u64 = text()?.parse().map_err(|_| line())?;
                    self.size = Some(size.min(i64::MAX.unsigned_abs()));
                }
                b"mtime" => {
                    let whole = text()?.split('.').next().unwrap_or_default();
                    self.mtime = Some(whole.parse().map_err(|_| line())?);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(damaged("a file has its holes in the PAX form"));
                }
                _ => {}
            }
            rest = then;
        }
        Ok(())
    }
}

fn add_segments(
    segments: &mut Vec<Segment>,
    fields: &[GnuSparseHeader],
    size: u64,
) -> io::Result<()> {
    for field in fields {
        let offset = header_number(&field.offset)?;
        let length = header_number(&field.numbytes)?;
        let before = segments.last().map_or(0, |last: &Segment| last.offset + last.length);
        match (u64::try_from(offset), u64::try_from(length)) {
            (Ok(_), Ok(0)) => {}
            (Ok(offset), Ok(length))
                if offset >= before
                    && offset.checked_add(length).is_some_and(|end| end <= size)
                    && segments.len() < SEGMENTS =>
            {
                segments.push(Segment { offset, length });
            }
            _ => return Err(damaged("the map of a file with holes makes no sense")),
        }
    }
    Ok(())
}

fn header_number(field: &[u8]) -> io::Result<i64> {
    number(field).ok_or_else(|| damaged("a number in a header cannot be read"))
}

/// Long names end with a zero byte.
fn without_end(mut name: Vec<u8>) -> Vec<u8> {
    if name.last() == Some(&0) {
        name.pop();
    }
    name
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
