use super::{local_path, plan};

/// Plans the upload of `source` (below a directory with `up/one.txt` and `up/sub/two.txt`).
#[track_caller]
fn check(source: &str, target: &str, expected: &[&str]) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir_all(dir.path().join("up/sub")).expect("directories");
    std::fs::write(dir.path().join("up/one.txt"), "1").expect("a file");
    std::fs::write(dir.path().join("up/sub/two.txt"), "2").expect("a file");
    let source = std::path::PathBuf::from(format!("{}/{source}", dir.path().display()));
    let target = target.parse().expect("it is a reference");
    let found = plan(&source, &target, &mut |_, _| {}).expect("it is read");
    let paths: Vec<_> = found.iter().map(|file| file.relative.as_str()).collect();
    assert_eq!(paths, expected, "{target:?}");
}

#[test]
fn a_trailing_slash_means_what_is_in_the_directory() {
    check("up/", "fs", &["one.txt", "sub/two.txt"]);
    check("up", "fs", &["up/one.txt", "up/sub/two.txt"]);
    check("up/", "fs#deep/er", &["deep/er/one.txt", "deep/er/sub/two.txt"]);
    check("up", "fs#deep/", &["deep/up/one.txt", "deep/up/sub/two.txt"]);
}

#[test]
fn a_file_keeps_its_name_or_takes_the_one_typed() {
    check("up/one.txt", "fs", &["one.txt"]);
    check("up/one.txt", "fs#dir/", &["dir/one.txt"]);
    check("up/one.txt", "fs#dir/other.txt", &["dir/other.txt"]);
}

#[test]
fn downloads_stay_below_the_directory() {
    let check = |path, asked, expected: Option<&str>| {
        let found = local_path(path, asked).ok();
        assert_eq!(found.as_deref(), expected.map(std::path::Path::new), "{path} of {asked}");
    };
    check("a/b.txt", "", Some("a/b.txt"));
    check("a/b.txt", "a", Some("b.txt"));
    check("a/b.txt", "a/b.txt", Some("b.txt"));
    check("../etc/passwd", "", None);
    check("/etc/passwd", "", None);
    check("a/../../x", "a", None);
}
