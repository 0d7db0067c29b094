use super::*;
use crate::records::{Direction, SortKey};

#[test]
fn a_cursor_is_read_as_it_was_written() {
    for (key, direction) in [
        (SortKey::CreatedAt, Direction::Descending),
        (SortKey::UpdatedAt, Direction::Ascending),
        (SortKey::Name, Direction::Descending),
        (SortKey::Source, Direction::Ascending),
    ] {
        let sort = Sort { key, direction };
        let id = "0191-\"ü".to_owned();
        let cursor = match key {
            SortKey::CreatedAt | SortKey::UpdatedAt => {
                Cursor::at_time(sort, 1_800_000_000_123_456, id)
            }
            SortKey::Name | SortKey::Source => Cursor::at_text(sort, "näme,".to_owned(), id),
        };
        let word = cursor.encode();
        assert!(word.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it)), "{word}");
        assert_eq!(Cursor::decode(&word), Some(cursor));
    }
}

#[test]
fn anything_else_is_none() {
    let encoded = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let words = [
        String::new(),
        "junk".to_owned(),
        "ü".to_owned(),
        encoded("[]"),
        encoded(r#"["-created_at", "1", "id"]"#),
        encoded(r#"["-created_at", 1.5, "id"]"#),
        encoded(r#"["name", 1, "id"]"#),
        encoded(r#"["size", 1, "id"]"#),
        encoded(r#"["--name", "a", "id"]"#),
        encoded(r#"["name", "a\u0000", "id"]"#),
        encoded(r#"["name", "a", "id", 1]"#),
    ];
    for word in words {
        assert_eq!(Cursor::decode(&word), None, "{word}");
    }
}
