//! Reading bundles, entry by entry: for whom they are unpacked, copied or shown.
//!
//! A bundle may come from anywhere, so nothing in it is believed: names that leave the
//! directory are refused, bytes and entries are counted, and links are never walked through.

use std::collections::HashSet;
use std::io::{self, Read, Write};

use errand_runner::names::display_name;
use flate2::read::MultiGzDecoder;
use tar::EntryType;

use super::ahead::Ahead;
use super::entries::{Entries, Raw};
use super::sparse::{Expanded, Segment, real_bytes};
use super::write::Writer;

/// Set-user-id and set-group-id bits are dropped where a bundle is unpacked.
pub(super) const KEPT_MODE: u32 = 0o1777;

/// What a bundle may hold at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of file contents, without holes.
    pub bytes: u64,
    /// Entries.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 1 << 40, entries: 10_000_000 }
    }
}

/// Which part of a bundle is meant: the top-level directory is always cut off.
#[derive(Clone, Debug, Default)]
pub struct Pick {
    /// A directory or a file below the top, without slashes around it; empty = everything.
    pub path: String,
}

/// Why a bundle could not be read.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It is damaged, or the disk said no.
    #[error("bundle cannot be unpacked: {0}")]
    Io(#[from] io::Error),
    /// A name leads out of the directory.
    #[error("bundle entry '{0}' leads out of its directory")]
    Escape(String),
    /// It is larger than allowed.
    #[error("bundle holds more than {0}")]
    TooLarge(String),
    /// It has an entry that no bundle of ours has.
    #[error("bundle entry '{name}' has type {kind}, expected a file, directory or link")]
    Kind {
        /// Its name.
        name: String,
        /// Its type.
        kind: String,
    },
    /// A hard link names something that is not part of what was picked.
    #[error("bundle entry '{0}' is a hard link to a file that is not picked")]
    Dangling(String),
}

/// One entry, its name below the picked directory; empty for the directory, or the single
/// file, itself.
pub(super) struct Entry<'a> {
    pub(super) kind: Kind,
    pub(super) name: Vec<u8>,
    pub(super) mode: u32,
    pub(super) mtime: i64,
    pub(super) size: u64,
    /// Where the data belongs.
    pub(super) segments: Vec<Segment>,
    pub(super) data: &'a mut dyn Read,
}

pub(super) enum Kind {
    Directory,
    File,
    Symlink(Vec<u8>),
    HardLink(Vec<u8>),
}

/// Copies the picked part of a gzipped tar into another bundle, below `prefix`, but for names
/// (below the prefix) that `leave_out` claims. Says how many entries were there.
pub fn copy_entries<W: Write>(
    bundle: impl Read + Send,
    pick: &Pick,
    into: &mut Writer<W>,
    prefix: &[u8],
    leave_out: &dyn Fn(&[u8], bool) -> bool,
    limits: Limits,
) -> Result<u64, UnpackError> {
    let below = |name: &[u8]| match (prefix.is_empty(), name.is_empty()) {
        (true, _) => name.to_vec(),
        (false, true) => prefix.to_vec(),
        (false, false) => [prefix, b"/", name].concat(),
    };
    // Of files alone: what has a further name that stays would be lost, or become another file.
    let mut left_out = HashSet::new();
    let mut found = 0;
    each(bundle, pick, limits, |entry| {
        let name = below(&entry.name);
        let directory = matches!(entry.kind, Kind::Directory);
        // The top of the source speaks for the top of the target, which has an entry already.
        if name.is_empty() && !directory {
            return Ok(());
        }
        found += 1;
        if leave_out(&name, directory) {
            if matches!(entry.kind, Kind::File) {
                left_out.insert(name);
            }
            return Ok(());
        }
        match entry.kind {
            Kind::Directory => into.directory(&name, entry.mode, entry.mtime)?,
            Kind::File => {
                let Entry { mode, mtime, size, segments, data, .. } = entry;
                into.segments(&name, mode, mtime, size, &segments, data)?;
            }
            Kind::Symlink(target) => into.symlink(&name, &target, entry.mtime)?,
            Kind::HardLink(first) => {
                let first = below(&first);
                if left_out.contains(&first) {
                    return Err(UnpackError::Dangling(display_name(&name)));
                }
                into.hard_link(&name, &first, entry.mode, entry.mtime)?;
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// A file in a bundle, as [`files`] shows it.
pub enum FileFound<'a> {
    /// Its contents.
    File {
        /// Permission bits.
        mode: u32,
        /// Bytes that it has, and how many of them are stored: the others are holes.
        size: u64,
        /// See `size`.
        stored: u64,
        /// Bytes that follow.
        data: &'a mut dyn Read,
    },
    /// It is a further name of a file that came before.
    Link {
        /// The name of that one.
        first: &'a [u8],
    },
}

/// Shows every regular file of a gzipped tar, by its name below the top; symbolic links are none.
pub fn files(
    bundle: impl Read + Send,
    limits: Limits,
    mut visit: impl FnMut(&[u8], FileFound<'_>) -> Result<(), UnpackError>,
) -> Result<(), UnpackError> {
    // Who takes them one by one takes their holes, too.
    let mut left = limits.bytes;
    let walked = each(bundle, &Pick::default(), limits, |entry| match &entry.kind {
        Kind::Directory | Kind::Symlink(_) => Ok(()),
        Kind::File => {
            let Entry { name, mode, size, segments, data, .. } = entry;
            let too_large = || too_large(limits, &display_name(&name), size, size);
            left = left.checked_sub(size).ok_or_else(too_large)?;
            let mut data = Expanded::new(data, &segments, size);
            let (mode, stored) = (mode & KEPT_MODE, real_bytes(&segments));
            visit(&name, FileFound::File { mode, size, stored, data: &mut data })
        }
        Kind::HardLink(first) => visit(&entry.name, FileFound::Link { first }),
    });
    walked.map(drop)
}

/// Walks the entries of the picked part, and says how many there were. They are decompressed
/// while what came before is visited.
pub(super) fn each(
    bundle: impl Read + Send,
    pick: &Pick,
    limits: Limits,
    visit: impl FnMut(Entry<'_>) -> Result<(), UnpackError>,
) -> Result<u64, UnpackError> {
    std::thread::scope(|scope| {
        let plain = Ahead::of(MultiGzDecoder::new(bundle), scope)?;
        walk(plain, pick, limits, visit)
    })
}

fn walk(
    plain: impl Read,
    pick: &Pick,
    limits: Limits,
    mut visit: impl FnMut(Entry<'_>) -> Result<(), UnpackError>,
) -> Result<u64, UnpackError> {
    let mut archive = Entries::new(plain);
    let (mut entries, mut bytes, mut picked) = (0, 0_u64, 0);
    while let Some(raw) = archive.next()? {
        let Raw { kind, name, link, mode, mtime, size, stored, segments } = raw;
        let shown = display_name(&name);
        entries += 1;
        bytes = bytes.saturating_add(stored);
        if entries > limits.entries {
            return Err(UnpackError::TooLarge(format!("{} entries", limits.entries)));
        }
        if bytes > limits.bytes {
            return Err(too_large(limits, &shown, size, stored));
        }
        let Some(name) = relative(&name, pick, &shown)? else { continue };
        picked += 1;
        let kind = match kind {
            EntryType::Directory => Kind::Directory,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File,
            EntryType::Symlink => Kind::Symlink(link),
            EntryType::Link => match relative(&link, pick, &shown)? {
                Some(first) => Kind::HardLink(first),
                None => return Err(UnpackError::Dangling(shown)),
            },
            other => return Err(UnpackError::Kind { name: shown, kind: format!("{other:?}") }),
        };
        let segments = segments.unwrap_or_else(|| vec![Segment { offset: 0, length: size }]);
        visit(Entry { kind, name, mode, mtime, size, segments, data: &mut archive })?;
    }
    Ok(picked)
}

fn too_large(limits: Limits, shown: &str, size: u64, real: u64) -> UnpackError {
    UnpackError::TooLarge(format!(
        "{} bytes: '{shown}' has a size of {size} bytes, of which {real} count",
        limits.bytes
    ))
}

/// The name below the picked directory; `None` when it is not part of it.
fn relative(full: &[u8], pick: &Pick, shown: &str) -> Result<Option<Vec<u8>>, UnpackError> {
    let escape = || UnpackError::Escape(shown.to_owned());
    if full.first() == Some(&b'/') || full.contains(&0) {
        return Err(escape());
    }
    let parts: Vec<_> =
        full.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        return Err(escape());
    }
    // The first component is the top-level directory.
    let Some((_, below)) = parts.split_first() else { return Ok(None) };
    let wanted: Vec<_> =
        pick.path.as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    Ok(below.strip_prefix(&wanted[..]).map(|rest| rest.join(&b'/')))
}
