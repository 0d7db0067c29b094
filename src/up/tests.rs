use std::os::unix::fs::PermissionsExt as _;

use super::lock::{DataDir, Error};
use super::ready::{Nats, Ready, RunFile, S3};

fn ready() -> Ready {
    Ready {
        pid: 7,
        http: "http://127.0.0.1:1".to_owned(),
        nats: Nats { url: "nats://127.0.0.1:2".to_owned(), token: Some("t".to_owned()) },
        s3: S3 {
            endpoint: "http://127.0.0.1:3".to_owned(),
            bucket: "b".to_owned(),
            access_key: "a".to_owned(),
            secret_key: "s".to_owned(),
        },
    }
}

#[test]
fn a_data_directory_has_one_platform() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let held = DataDir::lock(&dir.path().join("deep/data")).expect("nobody holds it");
    let error = DataDir::lock(&dir.path().join("deep/data")).err().expect("it is held");
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    let pid = std::process::id();
    assert!(
        error.to_string().contains(&format!("in use by the platform with pid {pid}")),
        "{error}"
    );
    drop(held);
    DataDir::lock(&dir.path().join("deep/data")).expect("it is free again");
}

#[test]
fn an_unusable_directory_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let error = DataDir::lock(&file.join("data")).err().expect("it cannot be made").to_string();
    assert!(error.contains("file/data: cannot be made"), "{error}");
}

#[test]
fn the_run_file_is_private_and_goes_away() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = DataDir::lock(dir.path()).expect("nobody holds it");
    let file = RunFile::write(&data, &ready()).expect("it is written");
    let path = data.path().join("run.json");
    let mode = path.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(Ready::read(data.path()).expect("it is whole"), ready());
    drop(file);
    assert!(!path.exists());
    let error = Ready::read(data.path()).expect_err("it is gone").to_string();
    assert!(error.contains("no platform runs in"), "{error}");
}
