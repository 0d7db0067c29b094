use std::io;

use axum::body::Body;
use futures_util::stream;

use super::{Line, Lines};

fn body(chunks: &[&'static str]) -> Body {
    let chunks: Vec<_> = chunks.iter().copied().map(Ok::<_, io::Error>).collect();
    Body::from_stream(stream::iter(chunks))
}

async fn all(mut lines: Lines) -> Vec<(u32, Option<String>)> {
    let mut found = Vec::new();
    while let Some(Line { number, bytes }) = lines.next().await.expect("it is whole") {
        found.push((number, bytes.map(|bytes| String::from_utf8(bytes).expect("text"))));
    }
    found
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test]
async fn lines_are_put_together_from_chunks_and_counted_with_the_blank_ones() {
    let lines = Lines::of(body(&["a", "b\n\n", " \r\nc\nd", "", "e"]), 1, 100);
    assert_eq!(all(lines).await, [(1, text("ab")), (4, text("c")), (5, text("de"))]);
    let lines = Lines::of(body(&["x\n", "y\n"]), 7, 100);
    assert_eq!(all(lines).await, [(7, text("x")), (8, text("y"))]);
    assert_eq!(all(Lines::of(body(&[]), 1, 100)).await, []);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_known_by_its_number_and_spoils_no_other() {
    let lines = Lines::of(body(&["abc\nab", "cd", "ef\nabc\n", "abcd"]), 1, 3);
    let found = all(lines).await;
    assert_eq!(found, [(1, text("abc")), (2, None), (3, text("abc")), (4, None)]);
}

#[tokio::test]
async fn a_body_that_breaks_off_has_no_end() {
    let chunks = [Ok("a\nb"), Err(io::Error::other("gone"))];
    let mut lines = Lines::of(Body::from_stream(stream::iter(chunks)), 1, 100);
    let first = lines.next().await.expect("it came").expect("a line");
    assert_eq!(first, Line { number: 1, bytes: Some(b"a".to_vec()) });
    assert!(lines.next().await.is_err());
}
