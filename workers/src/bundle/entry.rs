//! Headers of tar entries, with names and link targets kept to the byte.
//!
//! The format is GNU tar (<https://www.gnu.org/software/tar/manual/html_node/Standard.html>):
//! names beyond 100 bytes go into a preceding entry of type `L`, link targets into one of `K`,
//! numbers that have no octal place (sizes beyond 8 GiB, times before 1970 or after 2242) are
//! written in base 256, and files with holes are entries of type `S`, which every GNU tar reads.

use std::io::{self, Write};

use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

use super::sparse::Segment;

/// Bytes of the name and link fields of a header.
const FIELD_BYTES: usize = 100;

/// Everything in a tar comes in blocks of this size.
pub(super) const BLOCK_BYTES: usize = 512;

/// What an entry says about itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    /// Its kind.
    pub(super) kind: EntryType,
    /// Permission bits, set-id and sticky bits included.
    pub(super) mode: u32,
    /// Modification time, whole seconds since the epoch.
    pub(super) mtime: i64,
    /// Bytes that follow.
    pub(super) size: u64,
}

/// Writes the header of an entry; `meta.size` bytes and their padding must follow. `holes` are
/// the segments and the apparent size of a file that is stored without its holes.
pub(super) fn write(
    out: &mut impl Write,
    meta: Meta,
    name: &[u8],
    link: Option<&[u8]>,
    holes: Option<(&[Segment], u64)>,
) -> io::Result<()> {
    let mut header = plain(meta);
    set_field(out, &mut header, name, EntryType::GNULongName)?;
    if let Some(link) = link {
        set_field(out, &mut header, link, EntryType::GNULongLink)?;
    }
    let Some((segments, size)) = holes else {
        header.set_cksum();
        return out.write_all(header.as_bytes());
    };
    // A hole at the end is an empty segment there.
    let end = Segment { offset: size, length: 0 };
    let mut segments = segments.iter().chain([&end]).peekable();
    if let Some(gnu) = header.as_gnu_mut() {
        put_number(&mut gnu.realsize, signed(size));
        put_segments(&mut gnu.sparse, &mut segments);
        gnu.isextended[0] = u8::from(segments.peek().is_some());
    }
    header.set_cksum();
    out.write_all(header.as_bytes())?;
    while segments.peek().is_some() {
        let mut more = GnuExtSparseHeader::new();
        put_segments(more.sparse_mut(), &mut segments);
        more.set_is_extended(segments.peek().is_some());
        out.write_all(more.as_bytes())?;
    }
    Ok(())
}

/// Fills a block up after so many bytes.
pub(super) fn pad(out: &mut impl Write, size: u64) -> io::Result<()> {
    out.write_all(&[0; BLOCK_BYTES][..padding(size)])
}

/// Bytes that are missing to a whole block.
pub(super) fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK_BYTES as u64).unwrap_or_default();
    (BLOCK_BYTES - over) % BLOCK_BYTES
}

fn plain(meta: Meta) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(meta.kind);
    header.set_mode(meta.mode);
    header.set_uid(0);
    header.set_gid(0);
    let old = header.as_old_mut();
    put_number(&mut old.mtime, meta.mtime);
    put_number(&mut old.size, signed(meta.size));
    header
}

/// Puts a name into its field, or, when it is too long, into an entry of its own before.
fn set_field(
    out: &mut impl Write,
    header: &mut Header,
    value: &[u8],
    long: EntryType,
) -> io::Result<()> {
    let fitting = &value[..value.len().min(FIELD_BYTES)];
    let old = header.as_old_mut();
    let field = if long == EntryType::GNULongName { &mut old.name } else { &mut old.linkname };
    field[..fitting.len()].copy_from_slice(fitting);
    if fitting.len() == value.len() {
        return Ok(());
    }
    let size = value.len() as u64 + 1;
    let mut before = plain(Meta { kind: long, mode: 0o644, mtime: 0, size });
    before.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    before.set_cksum();
    out.write_all(before.as_bytes())?;
    out.write_all(value)?;
    out.write_all(b"\0")?;
    pad(out, size)
}

fn put_segments<'a>(
    fields: &mut [GnuSparseHeader],
    segments: &mut impl Iterator<Item = &'a Segment>,
) {
    for (field, segment) in fields.iter_mut().zip(segments) {
        put_number(&mut field.offset, signed(segment.offset));
        put_number(&mut field.numbytes, signed(segment.length));
    }
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Writes a number into a field: octal while it fits, else in base 256.
fn put_number(field: &mut [u8], value: i64) {
    let digits = field.len() - 1;
    if (0..1 << (3 * digits)).contains(&value) {
        field.copy_from_slice(format!("{value:0digits$o}\0").as_bytes());
        return;
    }
    let (fill, rest) = field.split_at_mut(digits + 1 - size_of::<i64>());
    fill.fill(if value < 0 { 0xff } else { 0 });
    rest.copy_from_slice(&value.to_be_bytes());
    field[0] |= 0x80;
}

/// Reads such a field.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 == 0 {
        let text = std::str::from_utf8(field).ok()?.trim_matches(|c: char| c == '\0' || c == ' ');
        return if text.is_empty() { Some(0) } else { i64::from_str_radix(text, 8).ok() };
    }
    // Bit 6 is the sign.
    let first = i128::from((first << 1).cast_signed() >> 1);
    let value = rest.iter().fold(first, |value, byte| value << 8 | i128::from(*byte));
    i64::try_from(value).ok()
}

#[cfg(test)]
mod tests;
