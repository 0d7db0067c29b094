use proptest::prelude::*;

use super::*;

#[test]
fn fileset_references() {
    let check = |reference: &str, expected: Result<(&str, &str), &str>| {
        let read = fileset_ref("f", reference, "default")
            .map(|found| (found.to_string(), found.directory()));
        let expected = expected
            .map(|(file, directory)| (file.to_owned(), directory.to_owned()))
            .map_err(|reason| format!("f {reason}"));
        assert_eq!(read, expected, "{reference}");
    };
    check("src", Ok(("default/src#", "default/src#")));
    check("other/src", Ok(("other/src#", "other/src#")));
    check("src#project", Ok(("default/src#project", "default/src#project/")));
    check("src#project/", Ok(("default/src#project", "default/src#project/")));
    check("default/src#a/./b//c", Ok(("default/src#a/b/c", "default/src#a/b/c/")));
    check("", Err("must not be empty."));
    check("  ", Err("must not be empty."));
    check("fileset://a/b", Err("must use 'workspace/fileset#path' or 'fileset#path' syntax."));
    check("src#a#b", Err("contains more than one '#'."));
    check("default/source/project", Err("must use '#' before fileset paths."));
    check("src#/etc", Err("fragment must be relative."));
    check(r"src#a\b", Err("fragment must use '/' separators."));
    check("src#../x", Err("fragment must not contain path escapes."));
    check("src#a/../../x", Err("fragment must not contain path escapes."));
    check("#x", Err("must include a fileset name."));
    check("default/#x", Err("must include a fileset name."));
}

#[test]
fn mount_paths() {
    const ESCAPE: &str = "must be a relative path and must not contain path escapes.";
    const EMPTY: &str = "must be a non-empty relative path.";
    let check = |path: &str, expected: Result<&str, &str>| {
        let expected = expected.map(str::to_owned).map_err(|reason| format!("mount_path {reason}"));
        assert_eq!(mount_path(path), expected, "{path}");
    };
    check("data/output/", Ok("data/output"));
    check("in/./n.txt/", Ok("in/n.txt"));
    check("a//b", Ok("a/b"));
    check("../secret", Err(ESCAPE));
    check("data/../../secret", Err(ESCAPE));
    check("a/../b", Err(ESCAPE));
    check("/abs/path", Err(ESCAPE));
    check("", Err(EMPTY));
    check(".", Err(EMPTY));
    check("///", Err(EMPTY));
    check(r"data\file", Err("must use '/' separators."));
    check("a\0b", Err("must not contain a NUL character."));
}

#[test]
fn overlapping_mounts() {
    let check = |mounts: &[&str], expected| assert_eq!(overlap(mounts), expected, "{mounts:?}");
    check(&["data", "data"], Some(("data", "data")));
    check(&["data", "data/file.txt"], Some(("data", "data/file.txt")));
    check(&["data/project/subdir", "data/project"], Some(("data/project/subdir", "data/project")));
    check(&["x", "data/a", "data/b"], None);
    check(&["data", "database"], None);
    check(&[], None);
}

#[test]
fn names() {
    let check = |word: &str, expected| assert_eq!(is_name(word), expected, "{word}");
    for good in ["ab", "valid-step-name", "has_underscore", "a.b", "a@b+c", "step1"] {
        check(good, true);
    }
    for bad in ["", "a", "123", "Ab", "has spaces", "-a", "ends-", "a--b", "äb"] {
        check(bad, false);
    }
    check(&"a".repeat(63), true);
    check(&"a".repeat(64), false);
}

#[test]
fn agent_references() {
    for good in ["calc", "research/calc", "a.b/c-d", "Mixed_Case"] {
        assert_eq!(agent_ref(good), Ok(good.to_owned()));
    }
    for bad in ["", "x y", "a/b/c", "/a", "a/", "not a valid ref!"] {
        let text = format!("Agent ref '{bad}' must be an entity name or a 'workspace/name' ref.");
        assert_eq!(agent_ref(bad), Err(text));
    }
}

proptest! {
    #[test]
    fn a_canonical_reference_is_its_own_canonical_form(reference in ".{0,40}") {
        if let Ok(read) = fileset_ref("f", &reference, "default") {
            let again = fileset_ref("f", &read.to_string(), "elsewhere");
            prop_assert_eq!(again, Ok(read));
        }
    }

    #[test]
    fn a_mount_path_stays_inside(path in r"[a-c./\\]{0,20}") {
        if let Ok(read) = mount_path(&path) {
            prop_assert!(read.split('/').all(|part| !["", ".", ".."].contains(&part)), "{read}");
            prop_assert_eq!(mount_path(&read), Ok(read));
        }
    }
}
