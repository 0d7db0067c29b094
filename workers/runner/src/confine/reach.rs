//! Lets another user come to what lies below directories that are closed to it, without opening
//! them to anybody else: in a mount namespace of its own, an empty directory takes the place of
//! the topmost closed one, with only the needed paths mounted inside, where they always were.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    mount_remount, move_mount, open_tree,
};
use rustix::process::umask;

use super::{Error, failed};

/// Makes `own` (for reading and writing) and `readable` reachable for a user, before this process
/// becomes it. Says whether anything had to be mounted for that.
pub(super) fn open_up(own: &Path, readable: &[PathBuf], id: u32) -> Result<bool, Error> {
    let doing = "find out what the agent's user can reach";
    let own = own.canonicalize().map_err(failed(doing))?;
    let mut needed = BTreeMap::<PathBuf, BTreeSet<PathBuf>>::new();
    for path in readable.iter().chain([&own]) {
        let path = path.canonicalize().map_err(failed(doing))?;
        if let Some(barrier) = barrier(&path, id).map_err(failed(doing))? {
            needed.entry(barrier).or_default().insert(path);
        }
    }
    let Some((barrier, paths)) = needed.first_key_value() else {
        return Ok(false);
    };
    let closed = |source| Error::Closed {
        path: paths.first().unwrap_or(barrier).clone(),
        barrier: barrier.clone(),
        source,
    };
    own_mounts().map_err(closed)?;
    // The modes of what is made below must not depend on who started us.
    let before = umask(Mode::from_raw_mode(0o022));
    let opened = needed.iter().try_for_each(|(barrier, paths)| replace(barrier, paths, &own));
    umask(before);
    opened.map_err(closed).map(|()| true)
}

/// A mount namespace of this process's own, of which no other sees anything.
pub(super) fn own_mounts() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// The topmost directory on the way to a path that the user may not pass.
fn barrier(path: &Path, id: u32) -> io::Result<Option<PathBuf>> {
    let above: Vec<_> = path.ancestors().skip(1).collect();
    for directory in above.into_iter().rev() {
        if !may_pass(&fs::metadata(directory)?, id) {
            return Ok(Some(directory.to_owned()));
        }
    }
    Ok(None)
}

/// Whether the user may come to what is in a directory, as things are.
pub(super) fn is_open(directory: &Path, id: u32) -> bool {
    matches!(barrier(&directory.join("anything"), id), Ok(None))
}

fn may_pass(directory: &Metadata, id: u32) -> bool {
    let bit = match (directory.uid() == id, directory.gid() == id) {
        (true, _) => 0o100,
        (false, true) => 0o010,
        (false, false) => 0o001,
    };
    directory.mode() & bit != 0
}

fn replace(barrier: &Path, paths: &BTreeSet<PathBuf>, own: &Path) -> io::Result<()> {
    // Taken hold of before they are hidden. A path comes before what lies below it.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let take = |path| Ok((path, open_tree(CWD, path, flags)?));
    let taken: Vec<(&PathBuf, OwnedFd)> = paths.iter().map(take).collect::<io::Result<_>>()?;
    mount("errand", barrier, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=0755")?;
    for (path, tree) in taken {
        make_place(path, File::from(tree.try_clone()?).metadata()?.is_dir())?;
        move_mount(&tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        if path != own {
            mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, c"")?;
        }
    }
    Ok(())
}

/// Something to mount over. It is there already when it lies below what was mounted before.
fn make_place(path: &Path, directory: bool) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    if directory {
        return fs::create_dir_all(path);
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create(path).map(drop)
}
