use std::os::unix::fs::symlink;

use super::*;

const SECRET: &str = "s3cr3t-value";

/// What a search finds in a directory, and whether it got to its end.
fn search(root: &Path, asked: &dyn Fn() -> bool) -> (Vec<String>, bool) {
    search_with(root, AHEAD_BYTES, asked)
}

fn search_with(root: &Path, ahead_bytes: usize, asked: &dyn Fn() -> bool) -> (Vec<String>, bool) {
    let mask = Mask::new([SECRET]);
    let until = Instant::now() + PATIENCE;
    let mut search = Search { mask: &mask, until, asked, ahead_bytes, is_whole: true };
    let found = search.directory(root);
    (found, search.is_whole)
}

#[test]
fn files_names_and_links_are_searched_and_links_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    fs::create_dir_all(root.join("sub/deep")).expect("it is new");
    fs::write(&outside, SECRET).expect("it is new");
    fs::write(root.join("sub/deep/far"), [&vec![0xff; 100_000], SECRET.as_bytes()].concat())
        .expect("it is new");
    fs::write(root.join("hex"), "7333637233742d76616c7565").expect("it is new");
    fs::write(root.join("clean"), "s3cr3t-valu e").expect("it is new");
    fs::write(root.join("back\\slash"), SECRET).expect("it is new");
    fs::write(root.join(format!("a {SECRET} b")), "").expect("it is new");
    symlink(&outside, root.join("followed")).expect("it is new");
    symlink(SECRET, root.join("link")).expect("it is new");
    let expected = ["a *** b", "back\\x5cslash", "hex", "link", "sub/deep/far"];
    assert_eq!(search(&root, &|| false), (expected.map(str::to_owned).to_vec(), true));
}

#[test]
fn names_are_known_to_hold_a_secret_whatever_is_in_the_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    fs::create_dir_all(root.join("sub")).expect("it is new");
    fs::write(root.join("sub/file"), SECRET).expect("it is new");
    let mask = Mask::new([SECRET]);
    let names = |asked: &dyn Fn() -> bool| {
        let until = Instant::now() + PATIENCE;
        let ahead_bytes = AHEAD_BYTES;
        Search { mask: &mask, until, asked, ahead_bytes, is_whole: true }.names(root)
    };
    assert!(!names(&|| false));
    assert!(names(&|| true), "nobody knows");
    fs::create_dir(root.join(format!("sub/of {SECRET}"))).expect("it is new");
    assert!(names(&|| false));
}

#[test]
fn a_few_of_many_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    for n in 0..50 {
        fs::write(dir.path().join(n.to_string()), SECRET).expect("it is new");
    }
    let (found, is_whole) = search(dir.path(), &|| false);
    assert_eq!((found.len(), is_whole), (NAMED, true));
}

#[test]
fn a_search_ends_when_it_is_asked_to() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("large"), vec![b'x'; 1_000_000]).expect("it is new");
    let looks = std::cell::Cell::new(0);
    // Not at the beginning, but while it reads.
    let asked = || looks.replace(looks.get() + 1) > 2;
    assert_eq!(search(dir.path(), &asked), (Vec::new(), false));
    assert!(looks.get() < 10, "{}", looks.get());
}

#[test]
fn no_directory_is_opened_once_the_search_is_over() {
    let dir = tempfile::tempdir().expect("a directory");
    for n in 0..50 {
        fs::create_dir_all(dir.path().join(format!("{n}/sub"))).expect("it is new");
    }
    let looks = std::cell::Cell::new(0);
    let asked = || looks.replace(looks.get() + 1) >= 50;
    assert_eq!(search(dir.path(), &asked), (Vec::new(), false));
    assert_eq!(looks.get(), 51, "one for each entry of the first, and one that says so");
}

#[test]
fn directories_that_would_take_too_much_memory_are_left_out_and_it_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    for n in 0..50 {
        fs::create_dir(dir.path().join(n.to_string())).expect("it is new");
        fs::write(dir.path().join(format!("{n}/{SECRET}")), "").expect("it is new");
    }
    let room = 5 * (dir.path().as_os_str().len() + 3);
    let (found, is_whole) = search_with(dir.path(), room, &|| false);
    assert_eq!((found.len(), is_whole), (5, false));
    assert_eq!(search(dir.path(), &|| false).0.len(), NAMED);
}
