use super::{MOST, check};

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
