//! A directory that is filled from foreign names: nothing it does can leave the directory.
//!
//! Every component is opened relative to its parent without following links, so a link that an
//! earlier entry made is never walked through.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

/// The root of what is being filled.
pub(super) struct Tree {
    root: OwnedFd,
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Tree {
    /// Opens an existing directory.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(root, DIRECTORY | OFlags::RDONLY, Mode::empty())?;
        Ok(Self { root })
    }

    /// Makes a directory with its parents; what stands in the way as anything else goes.
    pub(super) fn directory(&self, name: &[u8]) -> io::Result<()> {
        self.descend(name).map(drop)
    }

    /// Creates a file, replacing whatever has its name.
    pub(super) fn file(&self, name: &[u8]) -> io::Result<File> {
        let (parent, last) = self.parent(name)?;
        remove(&parent, last)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&parent, last, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Makes a symbolic link, replacing whatever has its name.
    pub(super) fn symlink(&self, name: &[u8], target: &[u8]) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        remove(&parent, last)?;
        Ok(rustix::fs::symlinkat(target, &parent, last)?)
    }

    /// Gives an existing file of this tree a further name.
    pub(super) fn hard_link(&self, name: &[u8], first: &[u8]) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        let (first_parent, first_last) = self.parent(first)?;
        if name != first {
            remove(&parent, last)?;
        }
        Ok(rustix::fs::linkat(&first_parent, first_last, &parent, last, AtFlags::empty())?)
    }

    /// Sets mode (unless it is a link) and time of an entry; the empty name is the root.
    pub(super) fn stamp(&self, name: &[u8], mode: Option<u32>, mtime: u64) -> io::Result<()> {
        let (parent, last) = if name.is_empty() {
            (rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?, &b"."[..])
        } else {
            self.parent(name)?
        };
        if let Some(mode) = mode {
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::chmodat(&parent, last, mode, AtFlags::empty())?;
        }
        let modified = Timespec { tv_sec: i64::try_from(mtime).unwrap_or(0), tv_nsec: 0 };
        let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let times = Timestamps { last_access: omitted, last_modification: modified };
        Ok(rustix::fs::utimensat(&parent, last, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The directory that holds `name`, made with its parents, and the last component.
    fn parent<'a>(&self, name: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        match name.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => Ok((self.descend(&name[..slash])?, &name[slash + 1..])),
            None => Ok((self.descend(b"")?, name)),
        }
    }

    fn descend(&self, name: &[u8]) -> io::Result<OwnedFd> {
        let mut at = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        for component in name.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            at = enter(&at, component)?;
        }
        Ok(at)
    }
}

/// Opens a child directory, making it when it is not there or is something else.
fn enter(at: &OwnedFd, component: &[u8]) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(at, component, DIRECTORY | OFlags::RDONLY, Mode::empty());
    match open() {
        Ok(child) => return Ok(child),
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR | Errno::LOOP) => remove(at, component)?,
        Err(error) => return Err(error.into()),
    }
    // Parents that have no entry of their own get what mkdir would give them.
    rustix::fs::mkdirat(at, component, Mode::from_raw_mode(0o755))?;
    Ok(open()?)
}

/// Removes whatever has a name, a whole directory included.
fn remove(at: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {
            let child = rustix::fs::openat(at, name, DIRECTORY | OFlags::RDONLY, Mode::empty())?;
            for entry in rustix::fs::Dir::read_from(&child)? {
                let entry = entry?;
                if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    remove(&child, entry.file_name().to_bytes())?;
                }
            }
            Ok(rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR)?)
        }
        Err(error) => Err(error.into()),
    }
}
