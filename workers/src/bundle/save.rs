//! Writes a directory tree as a bundle. Nobody should be at work in it any more, and nothing
//! depends on that: no link is followed, no FIFO opened, and what changes meanwhile is named.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use errand_runner::names::Names;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};

use super::changes::{Change, Changes, Found};
use super::contents::{Contents, Digest};
use super::given::{Known, What};
use super::progress::{ENTRY_BYTES, Progress};
use super::skipped::SkipList;
use super::sparse::{Data, Segment, segments};
use super::walk::{Entry, Step, walk};
use super::write::Writer;

/// What was found while a tree was saved.
#[derive(Debug, Default)]
pub struct Report {
    /// What was left out, and why.
    pub skipped: SkipList,
    /// Files that somebody wrote to meanwhile, the first of them. Each has the size that it had
    /// when it was opened, cut or padded with zeros, and its contents are of no one moment: a
    /// bundle that has such a file is not complete.
    pub changed: Vec<String>,
    /// What differs from what was given, where that is known.
    pub changes: Option<Found>,
}

/// Writes a tree, sorted by name, so that equal trees give equal bundles. `given` is the run
/// directory whose list of what was given the tree is compared with.
pub fn write_directory<W: Write>(
    root: &Path,
    top: &str,
    out: W,
    given: Option<&Path>,
) -> io::Result<(W, Report)> {
    let meta = rustix::fs::lstat(root)?;
    let mut saving = Saving {
        writer: Writer::new(out, top, permissions(&meta), meta.st_mtime)?,
        skipped: SkipList::default(),
        changed: Names::default(),
        changes: given.and_then(|run| Changes::open(run).unwrap_or_else(|error| unknown(&error))),
        links: HashMap::new(),
        contents: Contents::default(),
        progress: Progress::new(root, top),
    };
    walk(root, &mut |name, step| {
        match step {
            Step::Entry(entry) => saving.entry(name, &entry)?,
            Step::Failed(error) => saving.leave_out(name, error.kind().to_string()),
            Step::Left(_) => {}
        }
        Ok(())
    })?;
    let Saving { writer, skipped, changed, changes, .. } = saving;
    let finish = |changes: Changes| changes.finish().map_or_else(|error| unknown(&error), Some);
    let changes = changes.and_then(finish);
    Ok((writer.finish()?, Report { skipped, changed: changed.named, changes }))
}

/// Without a list that can be read a directory is saved all the same.
fn unknown<T>(error: &io::Error) -> Option<T> {
    tracing::warn!(%error, "what the agent changed is not known");
    None
}

struct Saving<'a, W: Write> {
    writer: Writer<W>,
    skipped: SkipList,
    changed: Names,
    changes: Option<Changes>,
    /// Device and inode of files with several names → the first one, and what it holds.
    links: HashMap<(u64, u64), (Vec<u8>, Option<What>)>,
    contents: Contents,
    progress: Progress<'a>,
}

impl<W: Write> Saving<'_, W> {
    fn entry(&mut self, name: &[u8], entry: &Entry<'_>) -> io::Result<()> {
        let (mode, mtime) = (permissions(&entry.stat), entry.stat.st_mtime);
        self.progress.add(ENTRY_BYTES);
        match entry.kind {
            FileType::Directory => {
                self.writer.directory(name, mode, mtime)?;
                self.compare(name, mode, || What::Directory);
            }
            FileType::Symlink => {
                match rustix::fs::readlinkat(entry.directory, entry.last, Vec::new()) {
                    Ok(target) => {
                        self.writer.symlink(name, target.as_bytes(), mtime)?;
                        self.compare(name, mode, || What::Symlink { target: target.into_bytes() });
                    }
                    Err(error) => self.leave_out(name, io::Error::from(error).kind().to_string()),
                }
            }
            FileType::RegularFile => {
                let inode = (entry.stat.st_dev, entry.stat.st_ino);
                let Some((first, what)) = self.links.get(&inode).cloned() else {
                    return self.file(name, entry);
                };
                self.writer.hard_link(name, &first, mode, mtime)?;
                if let Some(what) = what {
                    self.compare(name, mode, || what);
                }
            }
            FileType::Fifo => self.leave_out(name, "a FIFO cannot be stored"),
            FileType::Socket => self.leave_out(name, "a socket cannot be stored"),
            _ => self.leave_out(name, "a device cannot be stored"),
        }
        Ok(())
    }

    fn file(&mut self, name: &[u8], entry: &Entry<'_>) -> io::Result<()> {
        let (file, before) = match open(entry.directory, entry.last) {
            Ok(opened) => opened,
            Err(error) => {
                self.leave_out(name, error.kind().to_string());
                return Ok(());
            }
        };
        let (mode, size) = (permissions(&before), before.st_size.unsigned_abs());
        let has_holes = before.st_blocks.unsigned_abs() < size.div_ceil(512);
        let parts = match has_holes {
            true => segments(&file, size),
            false => vec![Segment { offset: 0, length: size }],
        };
        let given = self.ask(|changes| changes.given(name));
        // Files are hashed only where mode and size leave a doubt, or another name may.
        let is_alike = |known: &Known| {
            known.mode == mode && matches!(known.what, What::File { size: was, .. } if was == size)
        };
        let is_linked = before.st_nlink > 1;
        let is_hashed =
            given.as_ref().is_some_and(|known| is_linked || known.as_ref().is_some_and(is_alike));

        let Self { writer, contents, progress, .. } = self;
        let mut data = Data::new(&file, &parts, |offset, bytes| {
            progress.add(bytes.len() as u64);
            if is_hashed {
                contents.add(offset, bytes);
            }
        });
        writer.segments(name, mode, before.st_mtime, size, &parts, &mut data)?;
        let failed = data.failed;

        let digest = if is_hashed { contents.finish(size) } else { Digest::default() };
        let now = Known { mode, what: What::File { size, digest } };
        if is_linked {
            let what = is_hashed.then(|| now.what.clone());
            self.links.insert((before.st_dev, before.st_ino), (name.to_vec(), what));
        }
        if let Some(error) = failed {
            self.skipped.push(name, format!("{}; padded with zeros", error.kind()));
        } else if fstat(&file).is_ok_and(|after| is_changed(&before, &after)) {
            self.changed.push(name);
        }
        let change = match given.flatten() {
            Some(given) if given == now => return Ok(()),
            Some(_) => Change::Modified,
            None => Change::Added,
        };
        self.ask(|changes| changes.push(change, name));
        Ok(())
    }

    fn compare(&mut self, name: &[u8], mode: u32, what: impl FnOnce() -> What) {
        self.ask(|changes| changes.compare(name, &Known { mode, what: what() }));
    }

    fn leave_out(&mut self, name: &[u8], reason: impl Into<String>) {
        self.skipped.push(if name.is_empty() { b"." } else { name }, reason);
        self.ask(|changes| changes.leave_out(name));
    }

    /// Compares, for as long as there is something to compare with.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut Changes) -> io::Result<T>) -> Option<T> {
        let answer = ask(self.changes.as_mut()?);
        answer.map_or_else(
            |error| {
                self.changes = None;
                unknown(&error)
            },
            Some,
        )
    }
}

/// Opens what must still be a regular file: a link would lead elsewhere, a FIFO would block.
fn open(directory: &OwnedFd, name: &[u8]) -> io::Result<(File, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
    }
    Ok((file.into(), stat))
}

fn is_changed(before: &Stat, after: &Stat) -> bool {
    let seen = |stat: &Stat| {
        (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
    };
    seen(before) != seen(after)
}

fn permissions(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}
