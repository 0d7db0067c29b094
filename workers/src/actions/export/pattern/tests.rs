use super::Pattern;

#[test]
fn what_a_path_means() {
    let check = |written: &str, path: &str, expected: bool| {
        let pattern = Pattern::parse(written).expect("it is well formed");
        assert_eq!(pattern.matches(path), expected, "{written} and {path}");
    };
    for (written, yes, no) in [
        ("report.md", &["report.md"][..], &["reports.md", "a/report.md"][..]),
        ("./out//a.txt", &["out/a.txt"], &["out"]),
        ("out", &["out", "out/a", "out/b/c"], &["outer/a", "a/out"]),
        ("out/", &["out/a"], &["outer"]),
        ("*.md", &["a.md", ".md", "ä.md"], &["a.txt", "a/b.md"]),
        ("a?c*e*", &["abce", "abcdef", "aüc-e"], &["ace", "abcd", "abde"]),
        ("**/x", &["x", "a/x", "a/b/x", "a/x/c"], &["y", "ax"]),
        ("a/**/b.txt", &["a/b.txt", "a/c/d/b.txt"], &["b.txt", "c/a/b.txt"]),
        ("a/**", &["a/b", "a/b/c"], &["a", "b"]),
        ("**", &["a", "a/b"], &[]),
        ("**/a/**/b", &["a/b", "x/a/a/c/b"], &["a", "b/a"]),
        ("*a*a*b", &["aab", "xaxaxb", "aabab"], &["ab", "aabc"]),
    ] {
        for path in yes {
            check(written, path, true);
        }
        for path in no {
            check(written, path, false);
        }
    }
    for wrong in ["/etc/passwd", "../x", "a/../b"] {
        assert!(Pattern::parse(wrong).expect_err("it leads out").contains(wrong));
    }
}

#[test]
fn no_pattern_takes_long() {
    let pattern = Pattern::parse(&"**/*a*a*a*/".repeat(60)).expect("it is well formed");
    assert!(!pattern.matches(&"aaaaaaaaaaaaaaaaaaaaaaab/".repeat(30)));
}
