use super::FileRef;

#[track_caller]
fn check(text: &str, workspace: Option<&str>, fileset: &str, path: &str, is_dir: bool) {
    let expected = FileRef {
        workspace: workspace.map(str::to_owned),
        fileset: fileset.to_owned(),
        path: path.to_owned(),
        is_dir,
    };
    assert_eq!(text.parse(), Ok(expected), "{text}");
}

#[track_caller]
fn refused(text: &str, reason: &str) {
    let error = text.parse::<FileRef>().expect_err(text).to_string();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn references_are_read() {
    check("src", None, "src", "", true);
    check("team/src", Some("team"), "src", "", true);
    check("src#a/b.txt", None, "src", "a/b.txt", false);
    check("src#a//./b/", None, "src", "a/b", true);
    check("src#", None, "src", "", true);
    check("src#a#b", None, "src", "a#b", false);
}

#[test]
fn other_text_is_refused_with_the_reason() {
    refused("", "a name is empty");
    refused("/src", "a name is empty");
    refused("team/", "a name is empty");
    refused("..", "a dot is no name");
    refused("./src#a", "a dot is no name");
    refused("a/b/c", "behind '#'");
    refused("src#/etc", "absolute");
    refused("src#a/../b", "leads out");
}
