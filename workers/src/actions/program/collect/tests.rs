use super::{MOST, check, of_result};

#[test]
fn what_a_result_may_be_called() {
    for fine in ["report.md", "a", "Summary_2", "x-1.tar.gz"] {
        assert_eq!(check(fine, 0), Ok(()));
    }
    let long = "n".repeat(129);
    for (name, reason) in [
        (".hidden", "letters, digits"),
        ("a b", "letters, digits"),
        ("ü", "letters, digits"),
        (&long, "up to 128"),
        ("output_workdir", "the platform's own"),
        ("fabric_run_result", "the platform's own"),
    ] {
        let refused = check(name, 0).expect_err(name);
        assert!(refused.contains(name) && refused.contains(reason), "{refused}");
    }
    let beyond = check("fine", MOST).expect_err("there are too many");
    assert!(beyond.contains("16 results at most"), "{beyond}");
}

#[test]
fn secrets_are_told_of_the_result_that_holds_them() {
    let paths = ["a/x", "a/sub/y", "ab", "b"].map(str::to_owned);
    assert_eq!(of_result("a", &paths), ["x", "sub/y"]);
    assert_eq!(of_result("ab", &paths), ["ab"]);
    assert_eq!(of_result("c", &paths), [""; 0]);
}
