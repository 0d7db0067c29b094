//! Whom the things of a run belong to: the supervisor's user keeps the run directory, the agent's
//! user gets the directories inside that are its own.
//!
//! It happens before anything of the agent lives. Links are never followed: what they lead to is
//! not part of the run. A directory that is the agent's already was given with all that is in it by
//! whoever filled it.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, lchown};

use errand_runner::{RunDir, Sandbox};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat};

use crate::agent_dirs::AgentDirs;

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Sets owners and modes as the sandbox needs them.
pub(super) fn settle(run: &RunDir, dirs: &AgentDirs, sandbox: Sandbox) -> io::Result<()> {
    let Sandbox::User { id } = sandbox else {
        return fs::set_permissions(run.root(), Permissions::from_mode(0o700));
    };
    for directory in [run.base(), run.home(), run.tmp(), run.io()] {
        give(&openat(CWD, &directory, DIRECTORY, Mode::empty())?, id)?;
    }
    // These may be new in a directory that was given.
    let base = run.base();
    for path in [&dirs.workspace, &dirs.artifacts] {
        for directory in path.ancestors().take_while(|path| *path != base) {
            lchown(directory, Some(id), Some(id))?;
        }
    }
    // The agent passes through without seeing what lies here, and no other run's user even that.
    chown(run.root(), None, Some(id))?;
    fs::set_permissions(run.root(), Permissions::from_mode(0o710))
}

/// Gives a tree away, in one walk that goes back up by `..`: nothing moves a directory meanwhile.
/// However deep the tree is, one directory is open, and each is entered and left once.
fn give(top: &OwnedFd, id: u32) -> io::Result<()> {
    let owner = (Some(Uid::from_raw(id)), Some(Gid::from_raw(id)));
    if rustix::fs::fstat(top)?.st_uid == id {
        return Ok(());
    }
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

/// Gives away what is in a directory; returns the names of the directories among it that are yet to
/// be gone through.
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
        let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if Some(found.st_uid) == user.map(Uid::as_raw) {
            continue;
        }
        chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            directories.push(name.to_owned());
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests;
