//! Walks a directory tree, sorted by name, without following a link, and removes one. The names
//! of the directories on the way are held, and nothing else.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat, statat};
use rustix::io::Errno;

use super::descent::{DIRECTORY, Descent, existing, split};

/// What happens on the way.
pub(super) enum Step<'a> {
    /// Something is there. A directory is entered next.
    Entry(Entry<'a>),
    /// It cannot be looked at, or into.
    Failed(io::Error),
    /// A directory is done with; the one that it lies in.
    Left(&'a OwnedFd),
}

/// Is told of each step, with its path.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&[u8], Step<'_>) -> io::Result<()>;

/// Something in a tree.
pub(super) struct Entry<'a> {
    /// The directory that it lies in.
    pub(super) directory: &'a OwnedFd,
    /// What it is called there.
    pub(super) last: &'a [u8],
    /// What it is.
    pub(super) kind: FileType,
    /// What the file system says of it.
    pub(super) stat: Stat,
}

/// Shows everything below a root by its path.
pub(super) fn walk(root: &Path, visit: Visit<'_>) -> io::Result<()> {
    walk_from(Descent::open(root)?, visit)
}

/// Shows every file below a root by its path; a link is one, and leads nowhere.
pub fn each_file(root: &Path, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
    walk(root, &mut |path, step| {
        match step {
            Step::Entry(entry) if entry.kind != FileType::Directory => visit(path),
            _ => {}
        }
        Ok(())
    })
}

fn walk_from(mut descent: Descent, visit: Visit<'_>) -> io::Result<()> {
    let mut name = Vec::new();
    let mut waiting = match names(descent.go(b"", existing)?) {
        Ok(names) => vec![names],
        Err(error) => return visit(b"", Step::Failed(error)),
    };
    while let Some(names) = waiting.last_mut() {
        let Some(last) = names.next() else {
            waiting.pop();
            if !waiting.is_empty() {
                let (parent, _) = split(&name);
                let step = descent.go(parent, existing).map_or_else(Step::Failed, Step::Left);
                visit(&name, step)?;
                name.truncate(parent.len());
            }
            continue;
        };
        let above = name.len();
        let directory = descent.go(&name, existing);
        if above > 0 {
            name.push(b'/');
        }
        let last = last.as_bytes();
        name.extend_from_slice(last);
        let is_directory = match directory.and_then(|at| Ok((at, look(at, last)?))) {
            Ok((directory, stat)) => {
                let kind = FileType::from_raw_mode(stat.st_mode);
                visit(&name, Step::Entry(Entry { directory, last, kind, stat }))?;
                kind == FileType::Directory
            }
            Err(error) => {
                visit(&name, Step::Failed(error))?;
                false
            }
        };
        if is_directory {
            match descent.go(&name, existing).and_then(self::names) {
                Ok(names) => {
                    waiting.push(names);
                    continue;
                }
                Err(error) => visit(&name, Step::Failed(error))?,
            }
        }
        name.truncate(above);
    }
    Ok(())
}

fn look(directory: &OwnedFd, name: &[u8]) -> io::Result<Stat> {
    Ok(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The names in a directory, sorted.
fn names(directory: &OwnedFd) -> io::Result<std::vec::IntoIter<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort_unstable();
    Ok(names.into_iter())
}

/// Removes a tree that its agent may have made unwritable, and as deep as it likes.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    remove_directory(rustix::fs::CWD, root.as_os_str().as_bytes())
}

/// The same for a directory of that name in another.
pub(super) fn remove_directory(parent: impl AsFd, name: &[u8]) -> io::Result<()> {
    let full = Mode::RWXU;
    let open = || rustix::fs::openat(&parent, name, DIRECTORY, Mode::empty());
    let directory = match open() {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&parent, name, full, AtFlags::empty())?;
            open()?
        }
        opened => opened?,
    };
    rustix::fs::fchmod(&directory, full)?;
    walk_from(Descent::at(directory), &mut |name, step| {
        match step {
            Step::Entry(Entry { directory, last, kind: FileType::Directory, stat }) => {
                if Mode::from_raw_mode(stat.st_mode) & full != full {
                    rustix::fs::chmodat(directory, last, full, AtFlags::empty())?;
                }
            }
            Step::Entry(Entry { directory, last, .. }) => {
                rustix::fs::unlinkat(directory, last, AtFlags::empty())?;
            }
            Step::Left(parent) => {
                rustix::fs::unlinkat(parent, split(name).1, AtFlags::REMOVEDIR)?;
            }
            Step::Failed(error) => return Err(error),
        }
        Ok(())
    })?;
    Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
}
