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
