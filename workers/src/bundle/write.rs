//! Writing bundles: from a directory, or entry by entry.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use errand_runner::run_dir;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType};

use super::entry::{Meta, append};
use super::skipped::SkipList;

/// Fast, and nearly as small as the default for what agents leave behind.
const LEVEL: Compression = Compression::fast();

/// A bundle being written; every name is put below its top-level directory.
pub struct Writer<W: Write> {
    builder: Builder<GzEncoder<W>>,
    top: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a bundle. The directory at its top gets `mode` and `mtime` (seconds).
    pub fn new(out: W, top: &str, mode: u32, mtime: u64) -> io::Result<Self> {
        let builder = Builder::new(GzEncoder::new(out, LEVEL));
        let mut writer = Self { builder, top: top.as_bytes().to_vec() };
        writer.directory(b"", mode, mtime)?;
        Ok(writer)
    }

    /// Adds a directory; the empty name is the top itself.
    pub fn directory(&mut self, name: &[u8], mode: u32, mtime: u64) -> io::Result<()> {
        let meta = Meta { kind: EntryType::Directory, mode, mtime, size: 0 };
        let mut name = self.below_top(name);
        name.push(b'/');
        append(&mut self.builder, &meta, &name, None, &mut io::empty())
    }

    /// Adds a file of exactly `size` bytes. A source that is shorter is padded with zeros, one
    /// that is longer is cut: the rest of the bundle must stay readable. Says whether that
    /// was needed.
    pub fn file(
        &mut self,
        name: &[u8],
        mode: u32,
        mtime: u64,
        size: u64,
        data: &mut dyn Read,
    ) -> io::Result<bool> {
        let meta = Meta { kind: EntryType::Regular, mode, mtime, size };
        let mut exact = Exact { data, missing: size, padded: false };
        let name = self.below_top(name);
        append(&mut self.builder, &meta, &name, None, &mut exact)?;
        Ok(exact.padded)
    }

    /// Adds a symbolic link with its target to the byte.
    pub fn symlink(&mut self, name: &[u8], target: &[u8], mtime: u64) -> io::Result<()> {
        let meta = Meta { kind: EntryType::Symlink, mode: 0o777, mtime, size: 0 };
        let name = self.below_top(name);
        append(&mut self.builder, &meta, &name, Some(target), &mut io::empty())
    }

    /// Adds a further name of a file that is in the bundle already.
    pub fn hard_link(
        &mut self,
        name: &[u8],
        first: &[u8],
        mode: u32,
        mtime: u64,
    ) -> io::Result<()> {
        let meta = Meta { kind: EntryType::Link, mode, mtime, size: 0 };
        let (name, first) = (self.below_top(name), self.below_top(first));
        append(&mut self.builder, &meta, &name, Some(&first), &mut io::empty())
    }

    /// Ends the bundle and gives the output back, flushed.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.builder.into_inner()?.finish()?;
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

/// Writes a directory tree as a bundle. Nobody may be at work in it any more; what cannot be
/// stored or read is left out and named. Sorted by name, so that equal trees give equal bundles.
pub fn write_directory<W: Write>(root: &Path, top: &str, out: W) -> io::Result<(W, SkipList)> {
    let meta = root.symlink_metadata()?;
    let writer = Writer::new(out, top, permissions(&meta), seconds(&meta))?;
    let mut walk = Walk { writer, skipped: SkipList::default(), links: HashMap::new() };
    walk.children(root, b"")?;
    Ok((walk.writer.finish()?, walk.skipped))
}

struct Walk<W: Write> {
    writer: Writer<W>,
    skipped: SkipList,
    /// Device and inode of files with several names → the first name that was written.
    links: HashMap<(u64, u64), Vec<u8>>,
}

impl<W: Write> Walk<W> {
    fn children(&mut self, directory: &Path, below: &[u8]) -> io::Result<()> {
        let mut names: Vec<_> = match std::fs::read_dir(directory) {
            Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect(),
            Err(error) => {
                self.skipped.push(below, reason(&error));
                return Ok(());
            }
        };
        names.sort_unstable();
        for name in names {
            let mut full = below.to_vec();
            if !full.is_empty() {
                full.push(b'/');
            }
            full.extend_from_slice(name.as_bytes());
            self.entry(&directory.join(&name), &full)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: &[u8]) -> io::Result<()> {
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) => {
                self.skipped.push(name, reason(&error));
                return Ok(());
            }
        };
        let kind = meta.file_type();
        if kind.is_dir() {
            self.writer.directory(name, permissions(&meta), seconds(&meta))?;
            self.children(path, name)
        } else if kind.is_symlink() {
            match std::fs::read_link(path) {
                Ok(target) => {
                    self.writer.symlink(name, target.as_os_str().as_bytes(), seconds(&meta))
                }
                Err(error) => {
                    self.skipped.push(name, reason(&error));
                    Ok(())
                }
            }
        } else if kind.is_file() {
            self.file(path, name, &meta)
        } else {
            let what = if kind.is_fifo() {
                "a FIFO"
            } else if kind.is_socket() {
                "a socket"
            } else {
                "a device"
            };
            self.skipped.push(name, format!("{what} cannot be stored"));
            Ok(())
        }
    }

    fn file(&mut self, path: &Path, name: &[u8], meta: &Metadata) -> io::Result<()> {
        if meta.nlink() > 1 {
            let inode = (meta.dev(), meta.ino());
            if let Some(first) = self.links.get(&inode) {
                let first = first.clone();
                return self.writer.hard_link(name, &first, permissions(meta), seconds(meta));
            }
            self.links.insert(inode, name.to_vec());
        }
        let mut file = match run_dir::open_regular(path) {
            Ok(file) => file,
            Err(error) => {
                self.links.remove(&(meta.dev(), meta.ino()));
                self.skipped.push(name, reason(&error));
                return Ok(());
            }
        };
        let changed =
            self.writer.file(name, permissions(meta), seconds(meta), meta.size(), &mut file)?;
        if changed {
            self.skipped.push(name, "it shrank while it was saved; padded with zeros");
        }
        Ok(())
    }
}

fn permissions(meta: &Metadata) -> u32 {
    meta.mode() & 0o7777
}

/// Times before 1970 have no place in the header.
fn seconds(meta: &Metadata) -> u64 {
    u64::try_from(meta.mtime()).unwrap_or(0)
}

fn reason(error: &io::Error) -> String {
    error.kind().to_string()
}
