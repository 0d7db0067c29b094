use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Links, walk};

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    };
    write("b.txt", "bb");
    write("a/x.sh", "x");
    write("a/.hidden", "");
    dir
}

fn paths(root: &Path, links: Links) -> (anyhow::Result<Vec<String>>, Vec<String>) {
    let mut left_out = Vec::new();
    let found = walk(root, links, &mut |path, _| {
        left_out.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    });
    (found.map(|found| found.into_iter().map(|file| file.relative).collect()), left_out)
}

#[test]
fn files_come_in_order() {
    let dir = tree();
    let (found, left_out) = paths(dir.path(), Links::Refuse);
    assert_eq!(found.expect("it is read"), ["a/.hidden", "a/x.sh", "b.txt"]);
    assert!(left_out.is_empty());
}

#[test]
fn links_lead_to_files_only() {
    let dir = tree();
    symlink("b.txt", dir.path().join("to-file")).expect("a link");
    symlink("a", dir.path().join("to-dir")).expect("a link");
    symlink("nowhere", dir.path().join("broken")).expect("a link");
    let (found, mut left_out) = paths(dir.path(), Links::FollowToFiles);
    left_out.sort();
    assert_eq!(found.expect("it is read"), ["a/.hidden", "a/x.sh", "b.txt", "to-file"]);
    assert_eq!(left_out, ["broken", "to-dir"]);
    assert!(paths(dir.path(), Links::Refuse).0.is_err());
}
