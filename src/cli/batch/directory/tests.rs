use std::path::Path;

use super::{BEGUN, Directory, of_job};
use crate::cli::Usage;

fn open(path: &Path, group: Option<&str>, resume: bool) -> anyhow::Result<Directory> {
    Directory::open(path.to_owned(), group.map(str::to_owned), "default", resume)
}

#[track_caller]
fn refusal(opened: anyhow::Result<Directory>) -> String {
    let error = opened.err().expect("it is refused");
    assert!(error.is::<Usage>(), "{error:#}");
    error.to_string()
}

#[test]
fn a_batch_is_begun_once_and_gone_on_with_by_its_key() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = parent.path().join("out");
    let first = open(&path, None, true).expect("there is none yet");
    let refused = refusal(open(&path, None, true));
    assert!(refused.contains("another `errand batch run` works in"), "{refused}");
    let begun = first.begun.clone();
    drop(first);
    assert_eq!(begun, open(&path, None, true).expect("there is one").begun);
    assert!(begun.group.ends_with(&begun.key));
    assert!(open(&path, Some(&begun.group), true).is_ok());

    let refused = refusal(open(&path, None, false));
    assert!(refused.contains("has a batch already, ") && refused.contains("--resume"), "{refused}");
    let refused = refusal(open(&path, Some("other"), true));
    assert!(refused.contains("group") && refused.contains("not 'other'"), "{refused}");
    let elsewhere = Directory::open(path.clone(), None, "research", true);
    assert!(refusal(elsewhere).contains("workspace 'default', not 'research'"));

    std::fs::write(path.join(BEGUN), "{").expect("it is damaged");
    let error = open(&path, None, true).err().expect("it is not read");
    assert!(error.to_string().contains("does not say which batch it is"), "{error:#}");
}

#[test]
fn no_job_writes_over_the_index() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = open(parent.path(), Some("nightly"), false).expect("it begins");
    assert_ne!(of_job(&directory.path, "index.jsonl"), directory.index_path());
    assert_eq!(of_job(&directory.path, "one"), parent.path().join("one"));
}
