use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

#[test]
fn a_place_keeps_its_id_whatever_its_path_is_called() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    fs::create_dir(&data).expect("a directory");
    let place = name(&data, None).expect("it is made");
    let kept = fs::read_to_string(data.join("place")).expect("it is kept");
    assert_eq!(kept, format!("{place}\n"));
    assert!(Uuid::parse_str(&place).is_ok(), "{place}");
    let mode = fs::metadata(data.join("place")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&data).expect("it can be read").count(), 1, "no draft is left");

    let link = directory.path().join("link");
    symlink(&data, &link).expect("a link");
    for spelling in [link, data.join("../data"), data.clone()] {
        assert_eq!(name(&spelling, None).expect("it is read"), place, "{spelling:?}");
    }
    assert_eq!(name(&data, Some("rack-7")).expect("it is read"), format!("rack-7:{place}"));
}

#[test]
fn two_data_directories_are_two_places() {
    let (one, other) = (tempfile::tempdir(), tempfile::tempdir());
    let [one, other] = [one, other].map(|it| {
        let directory = it.expect("a directory");
        name(directory.path(), Some("host")).expect("it is made")
    });
    assert_ne!(one, other);
}

#[test]
fn workers_that_start_at_once_agree() {
    let directory = tempfile::tempdir().expect("a directory");
    let names: Vec<_> = std::thread::scope(|scope| {
        let start = || name(directory.path(), None).expect("it is made");
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        workers.into_iter().map(|worker| worker.join().expect("it ends")).collect()
    });
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

#[test]
fn a_file_that_holds_no_id_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("place"), "mine\n").expect("it is written");
    let error = name(directory.path(), None).expect_err("it is no id").to_string();
    let expected = format!("place file {}/place holds 'mine'", directory.path().display());
    assert!(error.starts_with(&expected) && error.contains("remove it"), "{error}");
    let nowhere = name(&directory.path().join("none"), None);
    assert!(matches!(nowhere, Err(Error::Io { .. })), "{nowhere:?}");
}
