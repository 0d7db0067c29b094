use super::*;

#[test]
fn paths_resolve_inside_the_fileset() {
    let check = |path: &str, expected: Option<&str>| {
        let outside = || Outside(path.to_owned());
        assert_eq!(normalise(path), expected.map(str::to_owned).ok_or_else(outside), "{path}");
    };
    check("", Some(""));
    check(".", Some(""));
    check("a/./b", Some("a/b"));
    check("a//b", Some("a/b"));
    check("d/", Some("d"));
    check("a/../top.txt", Some("top.txt"));
    check("a/..", Some(""));
    check("..", None);
    check("a/../../x", None);
    check("/app", None);
    check("a\0b", None);
    check("..a/b..", Some("..a/b.."));
}

#[test]
fn segments_are_names_of_files() {
    let (fits, over) = ("n".repeat(255), "é".repeat(128));
    assert_eq!(too_long(&format!("a/{fits}/b")), None);
    assert_eq!(too_long(&format!("a/{over}/b")), Some(over.as_str()));
}
