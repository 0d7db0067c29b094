//! What an agent changed, against the list of what it was given.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::super::{GIVEN, Given, Owner, Writer, unpack_given, write_directory};
use super::pack;

/// A run directory with what an agent was given in `work`.
struct Run(TempDir);

impl Run {
    fn given(bundles: &[&[u8]]) -> Self {
        let run = TempDir::new().expect("a temporary directory");
        let work = run.path().join("work");
        fs::create_dir(&work).expect("mkdir");
        let mut given = Given::create(run.path()).expect("begins");
        for bundle in bundles {
            unpack_given(*bundle, &work, Owner::default(), &mut given).expect("unpacks");
        }
        given.finish().expect("ends");
        Self(run)
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// `A path`, `M path`, `D path`, as the whole list has it; checks that the lists agree.
    fn changes(&self) -> Vec<String> {
        let (_, report) =
            write_directory(&self.work(), "w", Vec::new(), Some(self.0.path())).expect("packs");
        let found = report.changes.expect("there is a list");
        let (named, totals, is_cut) = (found.named(), found.totals(), found.is_cut());
        let mut all = Vec::new();
        found.write_all(&mut all).expect("writes");
        let all: Value = serde_json::from_slice(&all).expect("JSON");
        let mut lines = Vec::new();
        let kinds = [("A", "added"), ("M", "modified"), ("D", "deleted")];
        for (index, (letter, kind)) in kinds.into_iter().enumerate() {
            let paths = all[kind].as_array().expect("a list");
            assert_eq!(all["totals"][kind], totals[index]);
            assert_eq!(paths.len() as u64, totals[index]);
            if !is_cut {
                assert!(paths.iter().eq(named[index].iter()), "{kind}");
            }
            let path = |path: &Value| format!("{letter} {}", path.as_str().expect("a path"));
            lines.extend(paths.iter().map(path));
        }
        lines
    }
}

/// A tree that is given.
fn source() -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    let root = dir.path();
    fs::create_dir_all(root.join("a/b")).expect("mkdir");
    fs::create_dir_all(root.join("empty")).expect("mkdir");
    // In the order of bytes this one comes between `a` and what is in it.
    fs::write(root.join("a-b"), "x").expect("write");
    for name in ["a/b/one", "a/b/two", "same", "touched", "mode", "kind", "linked"] {
        fs::write(root.join(name), name).expect("write");
    }
    fs::hard_link(root.join("linked"), root.join("other-name")).expect("link");
    symlink("same", root.join("link")).expect("symlink");
    let holes = File::create(root.join("holes")).expect("create");
    holes.set_len(1 << 20).expect("truncate");
    holes.write_all_at(b"data", 1 << 19).expect("write");
    dir
}

#[test]
fn what_was_only_looked_at_or_touched_is_no_change() {
    let run = Run::given(&[&pack(source().path())]);
    assert_eq!(run.changes(), [""; 0]);
    let touch = |name: &str| {
        let file = File::options().append(true).open(run.work().join(name)).expect("open");
        file.set_modified(std::time::UNIX_EPOCH).expect("touch");
    };
    touch("touched");
    touch("linked");
    // The same bytes, written anew and without the hole.
    let holes = fs::read(run.work().join("holes")).expect("read");
    fs::write(run.work().join("holes"), holes).expect("write");
    fs::remove_file(run.work().join("other-name")).expect("unlink");
    fs::write(run.work().join("other-name"), "linked").expect("write");
    assert_eq!(run.changes(), [""; 0]);
}

#[test]
fn what_is_new_other_or_gone_is_told() {
    let run = Run::given(&[&pack(source().path())]);
    let root = run.work();
    fs::remove_dir_all(root.join("a/b")).expect("rm");
    fs::write(root.join("a/new"), "").expect("write");
    fs::write(root.join("same"), "SAME").expect("write");
    fs::set_permissions(root.join("mode"), fs::Permissions::from_mode(0o600)).expect("chmod");
    fs::remove_file(root.join("kind")).expect("rm");
    fs::create_dir(root.join("kind")).expect("mkdir");
    fs::write(root.join("linked"), "LINKED").expect("write");
    fs::remove_file(root.join("link")).expect("rm");
    symlink("mode", root.join("link")).expect("symlink");
    fs::remove_dir(root.join("empty")).expect("rm");
    assert_eq!(
        run.changes(),
        [
            "A a/new",
            "M kind",
            "M link",
            "M linked",
            "M mode",
            "M other-name",
            "M same",
            "D a/b",
            "D a/b/one",
            "D a/b/two",
            "D empty",
        ]
    );
}

#[test]
fn a_later_bundle_is_laid_over_an_earlier_one() {
    let base = source();
    let over = TempDir::new().expect("a temporary directory");
    fs::write(over.path().join("a"), "a file where a directory was").expect("write");
    fs::write(over.path().join("same"), "other").expect("write");
    let run = Run::given(&[&pack(base.path()), &pack(over.path())]);
    assert_eq!(run.changes(), [""; 0]);
    fs::write(run.work().join("same"), "same!").expect("write");
    assert_eq!(run.changes(), ["M same"]);
}

#[test]
fn directories_without_an_entry_of_their_own_are_none_of_the_agents() {
    let mut writer = Writer::new(Vec::new(), "w", 0o755, 1).expect("begins");
    writer.file(b"deep/down/f", 0o644, 1, 1, &mut &b"x"[..]).expect("writes");
    let run = Run::given(&[&writer.finish().expect("ends")]);
    assert_eq!(run.changes(), [""; 0]);
    fs::remove_file(run.work().join("deep/down/f")).expect("rm");
    assert_eq!(run.changes(), ["D deep/down/f"]);
}

#[test]
fn many_changes_are_bounded_in_what_is_named() {
    let run = Run::given(&[&pack(source().path())]);
    for index in 0..200 {
        fs::write(run.work().join(format!("new\n\u{1}{index:0150}")), "").expect("write");
    }
    let (_, report) =
        write_directory(&run.work(), "w", Vec::new(), Some(run.0.path())).expect("packs");
    let found = report.changes.expect("there is a list");
    assert_eq!(found.totals(), [200, 0, 0]);
    assert!(found.is_cut());
    let [added, ..] = found.named();
    assert!((10..50).contains(&added.len()), "{}", added.len());
    assert!(serde_json::to_vec(&added).expect("JSON").len() < 8 * 1024);
    assert_eq!(run.changes().len(), 200);
}

#[test]
fn without_a_whole_list_nothing_is_told() {
    let run = Run::given(&[&pack(source().path())]);
    let list = run.0.path().join(GIVEN);
    let told = |given: &Path| {
        let saved = write_directory(&run.work(), "w", Vec::new(), Some(given));
        saved.map(|(_, report)| report.changes.is_some())
    };
    assert!(told(run.0.path()).expect("packs"));
    let bytes = fs::read(&list).expect("read");
    fs::write(&list, "something else\0").expect("write");
    assert!(!told(run.0.path()).expect("packs"));
    fs::write(&list, &bytes[..bytes.len() / 2]).expect("write");
    assert!(!told(run.0.path()).expect("packs"));
    fs::remove_file(&list).expect("rm");
    assert!(!told(run.0.path()).expect("packs"));
}
