use super::*;

#[test]
fn cursors_come_back() {
    let job = streams::id::JobId::new().to_string();
    for cursor in [Cursor::From(0), Cursor::Before(u64::MAX), Cursor::Tailed(7, job)] {
        assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
    }
}

#[test]
fn other_words_are_no_cursors() {
    for word in [
        "",
        "x",
        "0OIl",
        "äöü",
        &bs58::encode("f:-1").into_string(),
        &bs58::encode("q:1").into_string(),
        &bs58::encode(format!("t:1:{}", "x".repeat(1024))).into_string(),
    ] {
        assert_eq!(Cursor::decode(word), None, "{word}");
    }
}
