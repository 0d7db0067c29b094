use super::*;

#[test]
fn ranges() {
    let check = |text: &str, size: u64, expected: Option<(u64, u64)>| {
        assert_eq!(parse(text, size), expected, "{text} of {size}");
    };
    check("bytes=0-3", 10, Some((0, 3)));
    check("bytes=4-", 10, Some((4, 9)));
    check("bytes=-3", 10, Some((7, 9)));
    check("bytes=-30", 10, Some((0, 9)));
    check("bytes=5-99999999999999999999999", 10, Some((5, 9)));
    check("bytes=1-2, 5-6", 10, Some((1, 2)));
    check("bytes=10-", 10, None);
    check("bytes=3-2", 10, None);
    check("bytes=-0", 10, None);
    check("bytes=-", 10, None);
    check("bytes=a-b", 10, None);
    check("bytes=+1-2", 10, None);
    check("lines=1-2", 10, None);
    check("bytes=0-", 0, None);
}

#[test]
fn what_is_asked_for() {
    assert!(matches!(asked(&HeaderMap::new(), 10, &[]), Ok(None)));
    let mut headers = HeaderMap::new();
    headers.insert(header::RANGE, HeaderValue::from_static("bytes=20-"));
    let refused = asked(&headers, 10, &[]).expect_err("it lies beyond the end").into_response();
    assert_eq!(refused.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(refused.headers()[header::CONTENT_RANGE], "bytes */10");
}

#[test]
fn a_part_of_something_else_is_not_gone_on_with() {
    let mut headers = HeaderMap::new();
    headers.insert(header::RANGE, HeaderValue::from_static("bytes=4-"));
    headers.insert(header::IF_RANGE, HeaderValue::from_static("\"ab\""));
    let (same, other) = (etag("ab").expect("a header"), etag("cd").expect("a header"));
    assert!(matches!(asked(&headers, 10, &[&other, &same]), Ok(Some((4, 9)))));
    assert!(matches!(asked(&headers, 10, &[&other]), Ok(None)));
}
