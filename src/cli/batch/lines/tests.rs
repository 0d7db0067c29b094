use super::{Extent, Lines};

#[test]
fn blank_lines_are_counted_and_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("specs.jsonl");
    std::fs::write(&path, "a\r\n\n  b \n\n").expect("a file");
    let mut lines = Lines::open(&path).expect("it is there");
    assert_eq!(lines.next().expect("it reads"), Some((1, b"a".to_vec())));
    assert_eq!(lines.next().expect("it reads"), Some((3, b"b".to_vec())));
    assert_eq!(lines.next().expect("it reads"), None);
    assert_eq!(Lines::extent(&path).expect("it reads"), Extent { last: 3, lines: 2 });

    std::fs::write(&path, "").expect("a file");
    assert_eq!(Lines::extent(&path).expect("it reads"), Extent::default());
    let gone = Lines::open(&directory.path().join("gone")).err().expect("it is not there");
    assert!(gone.to_string().starts_with("cannot read "), "{gone}");
}
