//! Fills a directory from a bundle, and notes what an agent is given with it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::contents::{Contents, Digest};
use super::given::{Given, Known, What};
use super::read::{Entry, KEPT_MODE, Kind, Limits, Pick, UnpackError, each};
use super::sparse::{Data, Segment, segments};
use super::tree::{Owner, Tree, stamp};

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// Unpacks the picked part of a gzipped tar into an existing directory. Says how many entries
/// it had; a single picked file gets the name `single`.
pub fn unpack(
    bundle: impl Read + Send,
    pick: &Pick,
    root: &Path,
    single: &str,
    limits: Limits,
) -> Result<u64, UnpackError> {
    Unpacking::new(root, Owner::default(), None)?.run(bundle, pick, single.as_bytes(), limits)
}

/// Unpacks all of it for its owner, who gets the directory too, and adds what it holds to the list
/// of what an agent is given.
pub fn unpack_given(
    bundle: impl Read + Send,
    root: &Path,
    owner: Owner,
    given: &mut Given,
) -> Result<u64, UnpackError> {
    let unpacking = Unpacking::new(root, owner, Some(given))?;
    unpacking.run(bundle, &Pick::default(), b"", Limits::default())
}

struct Unpacking<'a> {
    tree: Tree,
    given: Option<&'a mut Given>,
    contents: Contents,
    buffer: Vec<u8>,
    /// Digests of files that have further names, by inode.
    linked: HashMap<u64, What>,
    /// Mode and time of directories. They are set last, the deepest first: a read-only one could
    /// not be filled, and filling it would change its time. Of several entries the last counts.
    directories: BTreeMap<Vec<u8>, (u32, i64)>,
}

impl<'a> Unpacking<'a> {
    fn new(root: &Path, owner: Owner, given: Option<&'a mut Given>) -> io::Result<Self> {
        Ok(Self {
            tree: Tree::open(root, owner)?,
            given,
            contents: Contents::default(),
            buffer: vec![0; BUFFER_BYTES],
            linked: HashMap::new(),
            directories: BTreeMap::new(),
        })
    }

    fn run(
        mut self,
        bundle: impl Read + Send,
        pick: &Pick,
        single: &[u8],
        limits: Limits,
    ) -> Result<u64, UnpackError> {
        let entries = each(bundle, pick, limits, |entry| Ok(self.entry(entry, single)?))?;
        for (name, (mode, mtime)) in self.directories.iter().rev() {
            self.tree.stamp(name, *mode, *mtime)?;
        }
        Ok(entries)
    }

    fn entry(&mut self, entry: Entry<'_>, single: &[u8]) -> io::Result<()> {
        let Entry { kind, name: full, mode, mtime, size, segments, data } = entry;
        let name = if full.is_empty() { single } else { &full };
        let mode = mode & KEPT_MODE;
        match kind {
            Kind::Directory => {
                self.tree.directory(&full)?;
                self.note(&full, mode, || What::Directory)?;
                self.directories.insert(full, (mode, mtime));
                Ok(())
            }
            Kind::File => {
                let mut file = self.tree.file(name)?;
                let digest = self.fill(&mut file, size, &segments, data)?;
                stamp(&file, mode, mtime)?;
                self.note(name, mode, || What::File { size, digest })
            }
            Kind::Symlink(target) => {
                self.tree.symlink(name, &target, mtime)?;
                self.note(name, 0o777, || What::Symlink { target })
            }
            Kind::HardLink(first) => {
                self.tree.hard_link(name, &first)?;
                self.note_link(name)
            }
        }
    }

    /// Writes the data of a file to where it belongs, and hashes it if somebody wants to know.
    fn fill(
        &mut self,
        file: &mut File,
        size: u64,
        segments: &[Segment],
        data: &mut dyn Read,
    ) -> io::Result<Digest> {
        let mut end = 0;
        for segment in segments {
            if segment.offset > end {
                file.seek(SeekFrom::Start(segment.offset))?;
            }
            let mut at = segment.offset;
            end = segment.offset + segment.length;
            while at < end {
                let room = usize::try_from(end - at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
                let count = data.read(&mut self.buffer[..room])?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.write_all(&self.buffer[..count])?;
                if self.given.is_some() {
                    self.contents.add(at, &self.buffer[..count]);
                }
                at += count as u64;
            }
        }
        if end < size {
            file.set_len(size)?;
        }
        Ok(if self.given.is_some() { self.contents.finish(size) } else { Digest::default() })
    }

    fn note(&mut self, name: &[u8], mode: u32, what: impl FnOnce() -> What) -> io::Result<()> {
        match &mut self.given {
            Some(given) => given.add(name, &Known { mode, what: what() }),
            None => Ok(()),
        }
    }

    /// A further name holds what the file holds that it leads to, which is hashed once more: it
    /// could not be known that there would be another name.
    fn note_link(&mut self, name: &[u8]) -> io::Result<()> {
        if self.given.is_none() {
            return Ok(());
        }
        // A bundle that is none of ours may have a further name for a link.
        let Ok(file) = self.tree.read(name) else { return Ok(()) };
        let meta = file.metadata()?;
        let what = match self.linked.get(&meta.ino()) {
            Some(what) => what.clone(),
            None => {
                let size = meta.len();
                let segments = segments(&file, size);
                let mut data =
                    Data::new(&file, &segments, |at, bytes| self.contents.add(at, bytes));
                while data.read(&mut self.buffer)? > 0 {}
                let what = What::File { size, digest: self.contents.finish(size) };
                self.linked.insert(meta.ino(), what.clone());
                what
            }
        };
        self.note(name, meta.mode() & 0o7777, || what)
    }
}
