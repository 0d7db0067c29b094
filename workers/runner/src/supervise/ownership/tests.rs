use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

const ID: u32 = 2_000_200_000;

/// Runs as root, as the supervisor does that gives anything away.
fn give_away(root: &Path) {
    assert!(rustix::process::geteuid().is_root(), "run the tests of sandboxes as root");
    let top = openat(CWD, root, DIRECTORY, Mode::empty()).expect("it is a directory");
    give(&top, ID).expect("root may");
}

fn owner(path: &Path) -> (u32, u32) {
    let found = path.symlink_metadata().expect("it is there");
    (found.uid(), found.gid())
}

#[test]
fn all_of_a_tree_is_given_and_nothing_that_it_links_to() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    fs::create_dir_all(root.join("a/b/c")).expect("room on the disk");
    fs::create_dir_all(root.join("d/e")).expect("room on the disk");
    fs::create_dir(&outside).expect("room on the disk");
    for file in ["file", "a/file", "a/b/c/file", "d/e/file", "../outside/file"] {
        fs::write(root.join(file), "").expect("room on the disk");
    }
    symlink(&outside, root.join("a/link")).expect("room on the disk");
    give_away(&root);
    for given in ["", "file", "a", "a/file", "a/link", "a/b/c/file", "d", "d/e", "d/e/file"] {
        assert_eq!(owner(&root.join(given)), (ID, ID), "{given}");
    }
    assert_eq!((owner(&outside), owner(&outside.join("file"))), ((0, 0), (0, 0)));
}

/// Whoever filled it gave all that is in it: it is not gone through once more.
#[test]
fn what_was_given_is_left_as_it_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path();
    fs::create_dir_all(root.join("given")).expect("room on the disk");
    fs::create_dir_all(root.join("new/deep")).expect("room on the disk");
    fs::write(root.join("given/file"), "").expect("room on the disk");
    chown(root.join("given"), Some(ID), Some(ID)).expect("root may");
    give_away(root);
    assert_eq!(owner(&root.join("given/file")), (0, 0));
    assert_eq!(owner(&root.join("new/deep")), (ID, ID));
    fs::write(root.join("later"), "").expect("room on the disk");
    give_away(root);
    assert_eq!(owner(&root.join("later")), (0, 0));
}

/// Reached from the top each time, this tree would take a million openings; kept open, more
/// directories than a process may have.
#[test]
fn a_deep_tree_is_given_in_one_walk() {
    const DEPTH: usize = 1500;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = |parent: &OwnedFd, name| openat(parent, name, DIRECTORY, Mode::empty());
    let mut at = openat(CWD, dir.path(), DIRECTORY, Mode::empty()).expect("it is a directory");
    let began = Instant::now();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&at, c"d", Mode::RWXU).expect("room on the disk");
        at = open(&at, c"d").expect("it is new");
    }
    let made = began.elapsed();
    give_away(dir.path());
    let gave = began.elapsed() - made;
    assert!(gave < (20 * made).max(Duration::from_secs(5)), "{made:?}, {gave:?}");
    let bottom = rustix::fs::fstat(&at).expect("it is open");
    assert_eq!((bottom.st_uid, bottom.st_gid), (ID, ID));
    // From the bottom up, which no path is short enough to name.
    for _ in 0..DEPTH {
        at = open(&at, c"..").expect("it has a parent");
        rustix::fs::unlinkat(&at, c"d", AtFlags::REMOVEDIR).expect("it is empty");
    }
}
