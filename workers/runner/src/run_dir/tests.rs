use super::*;

#[test]
fn a_file_is_read_whole_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("file");
    fs::write(&path, "12345").expect("room on the disk");
    assert_eq!(read_bounded(&path, 5).expect("it is short enough"), b"12345");
    let error = read_bounded(&path, 4).expect_err("it is too long");
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "it is longer than 4 bytes");
}

#[test]
fn a_closed_gate_lets_nobody_pass_until_it_is_opened() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = RunDir::new(dir.path());
    let identity = Identity { pid: 1, boot_id: String::new(), start_time: 1 };
    for _ in 0..2 {
        assert!(run.close().expect("it can be closed"), "also when it is closed");
        assert_eq!(run.life().expect("it can be looked at"), Life::Fresh);
        let taken = run.start(&identity).expect_err("nobody passes");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }
    run.reopen().expect("it can be opened");
    let lock = run.start(&identity).expect("one passes");
    assert_eq!(run.life().expect("it can be looked at"), Life::Running);
    assert!(!run.close().expect("it is too late"));
    run.reopen().expect("there is nothing to open");
    assert_eq!(run.life().expect("it can be looked at"), Life::Running);
    drop(lock);
    assert_eq!(run.life().expect("it can be looked at"), Life::Lost);
}

#[test]
fn a_path_is_read_as_it_is_written() {
    let read = |written: &str| below(Path::new("/base"), Path::new(written));
    let at = |path: &str| Some(PathBuf::from(path));
    assert_eq!(read("a/./b"), at("/base/a/b"));
    assert_eq!(read("x/../artifacts"), at("/base/artifacts"));
    assert_eq!(read(""), at("/base/"));
    for outside in ["..", "a/../../b", "/etc", "../base/a"] {
        assert_eq!(read(outside), None, "{outside}");
    }
}

#[test]
fn several_may_write_a_file_at_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("file");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    write_atomically(&path, b"whole", 0o600).expect("room on the disk");
                }
            });
        }
    });
    assert_eq!(fs::read(&path).expect("it is there"), b"whole");
    assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 1, "nothing is left beside");
}
