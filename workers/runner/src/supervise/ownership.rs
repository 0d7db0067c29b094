//! Whom the things of a run belong to: the supervisor's user keeps the run directory, the agent's
//! user gets the directories inside that are its own.
//!
//! It happens before anything of the agent lives. Links are never followed: what they lead to is
//! not part of the run.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};

use errand_runner::{RunDir, Sandbox};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, openat};

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Sets owners and modes as the sandbox needs them.
pub(super) fn settle(run: &RunDir, sandbox: Sandbox) -> io::Result<()> {
    let Sandbox::User { id } = sandbox else {
        return fs::set_permissions(run.root(), Permissions::from_mode(0o700));
    };
    for directory in [run.base(), run.home(), run.tmp(), run.io()] {
        give(&openat(CWD, &directory, DIRECTORY, Mode::empty())?, id)?;
    }
    // The agent passes through without seeing what lies here, and no other run's user even that.
    chown(run.root(), None, Some(id))?;
    fs::set_permissions(run.root(), Permissions::from_mode(0o710))
}

/// Gives a tree away, in one walk that goes back up by `..`: nothing moves a directory meanwhile.
/// However deep the tree is, one directory is open, and each is entered and left once.
fn give(top: &OwnedFd, id: u32) -> io::Result<()> {
    let owner = (Some(Uid::from_raw(id)), Some(Gid::from_raw(id)));
    let mut at = rustix::io::fcntl_dupfd_cloexec(top, 0)?;
    let mut ahead = vec![give_entries(&at, owner)?];
    while let Some(names) = ahead.last_mut() {
        if let Some(name) = names.pop() {
            at = openat(&at, &name, DIRECTORY, Mode::empty())?;
            ahead.push(give_entries(&at, owner)?);
        } else {
            ahead.pop();
            if !ahead.is_empty() {
                at = openat(&at, c"..", DIRECTORY, Mode::empty())?;
            }
        }
    }
    Ok(rustix::fs::fchown(top, owner.0, owner.1)?)
}

/// Gives away what is in a directory; returns the names of the directories among it.
fn give_entries(
    directory: &OwnedFd,
    (user, group): (Option<Uid>, Option<Gid>),
) -> io::Result<Vec<CString>> {
    let mut directories = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        if is_directory(directory, &entry)? {
            directories.push(name.to_owned());
        }
    }
    Ok(directories)
}

/// Not every file system tells the kind with the name.
fn is_directory(parent: &OwnedFd, entry: &rustix::fs::DirEntry) -> io::Result<bool> {
    let kind = match entry.file_type() {
        FileType::Unknown => {
            let found = rustix::fs::statat(parent, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            FileType::from_raw_mode(found.st_mode)
        }
        known => known,
    };
    Ok(kind == FileType::Directory)
}

#[cfg(test)]
mod tests;
