//! A directory that is filled from foreign names: nothing it does can leave the directory.
//!
//! Every component is opened relative to its parent without following links, so a link that an
//! earlier entry made is never walked through.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;

use super::descent::{DIRECTORY, Descent, existing, split};
use super::walk::remove_directory;

/// The root of what is being filled.
pub(super) struct Tree {
    descent: Descent,
    owner: Owner,
}

/// The user, and the group of the same number, to whom all is given that is made here; nobody in
/// particular when absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Owner(pub Option<u32>);

impl Tree {
    /// Opens an existing directory, and gives it to whom all is given.
    pub(super) fn open(root: &Path, owner: Owner) -> io::Result<Self> {
        let mut tree = Self { descent: Descent::open(root)?, owner };
        owner.give(tree.descent.go(b"", existing)?)?;
        Ok(tree)
    }

    /// Makes a directory with its parents; what stands in the way as anything else goes.
    pub(super) fn directory(&mut self, name: &[u8]) -> io::Result<()> {
        self.descent.go(name, self.owner.enter()).map(drop)
    }

    /// Creates a file, replacing whatever has its name.
    pub(super) fn file(&mut self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = self.make(name, &|parent, last| {
            rustix::fs::openat(parent, last, flags, mode).map(File::from)
        })?;
        self.owner.give(&file)?;
        Ok(file)
    }

    /// Makes a symbolic link, replacing whatever has its name.
    pub(super) fn symlink(&mut self, name: &[u8], target: &[u8], mtime: i64) -> io::Result<()> {
        let (user, group) = self.owner.ids();
        self.make(name, &|parent, last| {
            rustix::fs::symlinkat(target, parent, last)?;
            if user.is_some() {
                rustix::fs::chownat(parent, last, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            rustix::fs::utimensat(parent, last, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Gives an existing file of this tree a further name.
    pub(super) fn hard_link(&mut self, name: &[u8], first: &[u8]) -> io::Result<()> {
        let (first_parent, first_last) = split(first);
        let first_parent = self.descent.go(first_parent, existing)?;
        let first_parent = rustix::io::fcntl_dupfd_cloexec(first_parent, 0)?;
        if name == first {
            return Ok(());
        }
        self.make(name, &|parent, last| {
            rustix::fs::linkat(&first_parent, first_last, parent, last, AtFlags::empty())
        })
    }

    /// Opens a file of this tree.
    pub(super) fn read(&mut self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (parent, last) = split(name);
        let parent = self.descent.go(parent, existing)?;
        Ok(rustix::fs::openat(parent, last, flags, Mode::empty())?.into())
    }

    /// Sets mode and time of a directory (empty: the root), unless something else took its place.
    pub(super) fn stamp(&mut self, name: &[u8], mode: u32, mtime: i64) -> io::Result<()> {
        match self.descent.go(name, existing) {
            Ok(directory) => stamp(directory, mode, mtime),
            Err(error) if is_no_directory(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes something under a name; what has it already goes.
    fn make<T>(
        &mut self,
        name: &[u8],
        make: &dyn Fn(&OwnedFd, &[u8]) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let (parent, last) = split(name);
        let directory = self.descent.go(parent, self.owner.enter())?;
        match make(directory, last) {
            Err(Errno::EXIST) => {}
            made => return Ok(made?),
        }
        remove(directory, last)?;
        // A directory that went may have been one on the way to where we stood.
        self.descent.forget();
        Ok(make(self.descent.go(parent, self.owner.enter())?, last)?)
    }
}

/// Sets mode and time of what is open: by its name a link could have taken its place.
pub(super) fn stamp(open: impl AsFd, mode: u32, mtime: i64) -> io::Result<()> {
    rustix::fs::fchmod(&open, Mode::from_raw_mode(mode))?;
    Ok(rustix::fs::futimens(&open, &times(mtime))?)
}

fn is_no_directory(error: &io::Error) -> bool {
    let errors = [Errno::NOTDIR, Errno::LOOP, Errno::NOENT];
    errors.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn times(mtime: i64) -> Timestamps {
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Timestamps { last_access: omitted, last_modification: Timespec { tv_sec: mtime, tv_nsec: 0 } }
}

impl Owner {
    fn ids(self) -> (Option<Uid>, Option<Gid>) {
        (self.0.map(Uid::from_raw), self.0.map(Gid::from_raw))
    }

    /// Gives what is open. It takes set-id bits away, so modes are set after it.
    fn give(self, open: impl AsFd) -> io::Result<()> {
        match self.ids() {
            (None, _) => Ok(()),
            (user, group) => Ok(rustix::fs::fchown(open, user, group)?),
        }
    }

    /// Opens a child directory, making it when it is not there or is something else.
    fn enter(self) -> impl Fn(&OwnedFd, &[u8]) -> io::Result<OwnedFd> {
        move |at, component| {
            let open = || rustix::fs::openat(at, component, DIRECTORY, Mode::empty());
            match open() {
                Ok(child) => return Ok(child),
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR | Errno::LOOP) => remove(at, component)?,
                Err(error) => return Err(error.into()),
            }
            // Parents that have no entry of their own get what mkdir would give them.
            rustix::fs::mkdirat(at, component, Mode::from_raw_mode(0o755))?;
            let child = open()?;
            self.give(&child)?;
            Ok(child)
        }
    }
}

/// Removes whatever has a name, a whole directory included.
fn remove(at: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => remove_directory(at, name),
        Err(error) => Err(error.into()),
    }
}
