use serde_json::{Value, json};

use super::Index;
use crate::exit::Exit;

fn entry(line: u32, status: &str) -> Value {
    json!({"line": line, "status": status})
}

#[test]
fn the_last_entry_of_a_line_counts_and_a_torn_one_is_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("index.jsonl");
    let mut index = Index::open(path.clone()).expect("it opens");
    for (line, status) in [(2, "completed"), (1, "error"), (1, "pending")] {
        index.put(&entry(line, status)).expect("it is kept");
    }
    drop(index);
    let mut text = std::fs::read_to_string(&path).expect("it is there");
    text.push_str("{\"line\": 3, \"sta");
    std::fs::write(&path, text).expect("it is torn");

    let mut index = Index::open(path.clone()).expect("it opens");
    assert_eq!(index.entry(1).expect("it reads"), Some(entry(1, "pending")));
    assert_eq!(index.entry(3).expect("it reads"), None);
    assert_eq!(index.exits().collect::<Vec<_>>(), [Exit::Done]);
    index.put(&entry(3, "cancelled")).expect("it is kept");
    index.put(&entry(1, "completed")).expect("it is kept");
    index.tidy().expect("it is rewritten");

    let whole = [entry(1, "completed"), entry(2, "completed"), entry(3, "cancelled")];
    let expected: String = whole.iter().map(|entry| format!("{entry}\n")).collect();
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), expected);
    for (line, entry) in (1..).zip(&whole) {
        assert_eq!(index.entry(line).expect("it reads").as_ref(), Some(entry));
    }
    index.put(&entry(4, "completed")).expect("it is kept");
    assert_eq!(Index::open(path).expect("it opens").exits().count(), 4);
}

#[test]
fn what_is_no_entry_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("index.jsonl");
    for text in ["nonsense\n", "{\"status\": \"completed\"}\n"] {
        std::fs::write(&path, text).expect("a file");
        let error = Index::open(path.clone()).err().expect("it is none");
        assert!(format!("{error:#}").contains("index.jsonl: "), "{error:#}");
    }
}
