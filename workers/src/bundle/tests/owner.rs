//! Whom a directory belongs to that is filled for somebody.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use tempfile::TempDir;

use super::super::{Given, Owner, unpack_given};
use super::{odd_tree, pack};

const OWNER: u32 = 2_000_200_001;

/// Runs as root, as a worker does that has users for its runs.
#[test]
fn all_that_is_unpacked_for_a_user_is_the_users() {
    assert!(rustix::process::geteuid().is_root(), "run the tests of sandboxes as root");
    let run = TempDir::new().expect("a temporary directory");
    let work = run.path().join("work");
    fs::create_dir(&work).expect("mkdir");
    let mut given = Given::create(run.path()).expect("begins");
    let bundle = pack(odd_tree().path());
    unpack_given(&bundle[..], &work, Owner(Some(OWNER)), &mut given).expect("unpacks");
    let found = Command::new("find")
        .arg(&work)
        .args(["-not", "(", "-uid", "2000200001", "-gid", "2000200001", ")"])
        .output()
        .expect("find runs");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let closed = fs::metadata(work.join("closed")).expect("it is there");
    assert_eq!(closed.mode() & 0o7777, 0o500);
    assert_ne!(run.path().metadata().expect("it is there").uid(), OWNER);
}
