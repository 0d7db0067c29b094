use std::os::unix::process::CommandExt;

use tempfile::TempDir;

use super::*;

const RANGE: IdRange = IdRange { first: 5000, count: 3 };

/// The numbers of a machine that has no other platform.
fn ids(runs: &Path) -> Ids {
    Ids::new(runs, &runs.join(".machine"))
}

#[test]
fn a_number_is_one_runs_until_that_is_gone() {
    let runs = TempDir::new().expect("a temporary directory");
    let (one, other) = (ids(runs.path()), ids(runs.path()));
    let taken = [one.take(RANGE, "a"), other.take(RANGE, "b"), one.take(RANGE, "c")];
    let mut taken = taken.map(|id| id.expect("there are three"));
    taken.sort_unstable();
    assert_eq!(taken, [5000, 5001, 5002]);
    let full = one.take(RANGE, "d").expect_err("there are three");
    assert_eq!(full.to_string(), "all 3 users of agents are taken; widen worker.agent_ids");

    fs::create_dir(runs.path().join("b")).expect("room on the disk");
    fs::create_dir(runs.path().join(".c.partial")).expect("room on the disk");
    one.sweep().expect("it can be swept");
    one.take(RANGE, "e").expect("that of a is free");
    one.take(RANGE, "f").expect_err("b and c are there");
    other.free("b").expect("it can be looked at");
    one.take(RANGE, "f").expect_err("b still has its own");
    fs::remove_dir(runs.path().join("b")).expect("it is ours");
    other.free("b").expect("it can be freed");
    one.take(RANGE, "f").expect("that of b is free");
}

#[test]
fn another_platform_of_the_machine_has_other_numbers() {
    let machine = TempDir::new().expect("a temporary directory");
    let [one, other] = [(); 2].map(|()| TempDir::new().expect("a temporary directory"));
    let [one, other] = [one.path(), other.path()].map(|runs| Ids::new(runs, machine.path()));
    let range = IdRange { count: 2, ..RANGE };
    // Names that begin at the same number.
    let mine = one.take(range, "a").expect("there are two");
    let theirs = other.take(range, "a").expect("there are two");
    assert_ne!(mine, theirs);
    one.take(range, "b").expect_err("both are taken");
    other.free("a").expect("its run is gone");
    assert_eq!(one.take(range, "b").expect("it is free"), theirs);
    other.take(range, "b").expect_err("both are taken");
}

#[test]
fn a_boot_forgets_the_links_and_the_first_to_start_has_the_number() {
    let machine = TempDir::new().expect("a temporary directory");
    let [one, other] = [(); 2].map(|()| TempDir::new().expect("a temporary directory"));
    let run = one.path().join("a");
    let [one, other] = [one.path(), other.path()].map(|runs| Ids::new(runs, machine.path()));
    let range = IdRange { count: 1, ..RANGE };
    let forget = || {
        let links = fs::read_dir(machine.path()).expect("it is there");
        links.for_each(|link| fs::remove_file(link.expect("it is there").path()).expect("ours"));
    };
    fs::create_dir(&run).expect("room on the disk");
    assert_eq!(one.take(range, "a").expect("there is one"), 5000);
    forget();
    one.sweep().expect("it can be swept");
    other.take(range, "b").expect_err("the run of the first is still there");
    assert_eq!(one.of("a").expect("it is read"), Some(5000));
    forget();
    assert_eq!(other.take(range, "b").expect("nobody says that it is taken"), 5000);
    one.sweep().expect("it can be swept");
    assert_eq!(one.of("a").expect("it is read"), None, "it is the other's now");
    one.take(range, "a").expect_err("there is no other");
    assert_eq!(other.of("b").expect("it is read"), Some(5000));
}

#[test]
fn what_stands_where_a_platform_was_takes_nothing() {
    let machine = TempDir::new().expect("a temporary directory");
    let place = TempDir::new().expect("a temporary directory");
    let ids = Ids::new(&place.path().join("runs"), machine.path());
    let range = IdRange { count: 1, ..RANGE };
    let file = place.path().join("file");
    let made = std::process::Command::new("mkfifo").arg(place.path().join("fifo")).status();
    assert!(made.expect("there is a mkfifo").success());
    fs::write(&file, "a run").expect("room on the disk");
    std::os::unix::fs::chown(&file, Some(1234), None).expect("root may");
    for (n, target) in ["nothing", "fifo", "file", "file/below"].iter().enumerate() {
        let link = machine.path().join("5000");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(place.path().join(target), &link).expect("room on the disk");
        let run = format!("{n}");
        assert_eq!(ids.take(range, &run).expect("it is free"), 5000, "{target}");
        ids.free(&run).expect("it can be freed");
    }
}

#[test]
fn a_note_counts_as_far_as_the_number_is_the_runs() {
    let runs = TempDir::new().expect("a temporary directory");
    let ids = ids(runs.path());
    let [a, b] = ["a", "b"].map(|run| ids.take(RANGE, run).expect("there are three"));
    assert_eq!(ids.take(RANGE, "a").expect("it has one"), a);
    let file = |name: &str| runs.path().join(".ids").join(name);
    fs::remove_file(file("of.a")).expect("it is there");
    assert_eq!(ids.of("a").expect("it is read"), Some(a), "of a worker that made no notes");
    fs::write(file("of.a"), b.to_string()).expect("room on the disk");
    assert_eq!(ids.of("a").expect("it is read"), Some(a));
    fs::write(file("of.c"), a.to_string()).expect("room on the disk");
    assert_eq!(ids.of("c").expect("it is read"), None);
    ids.free("b").expect("it can be freed");
    assert!(!file("of.b").exists() && !file(&b.to_string()).exists());
    ids.sweep().expect("it can be swept");
    assert_eq!(fs::read_dir(runs.path().join(".ids")).expect("it is there").count(), 0);
}

#[test]
fn a_number_that_a_process_has_is_nobody_elses() {
    let runs = TempDir::new().expect("a temporary directory");
    let ids = ids(runs.path());
    // Of this process only, where these tests run twice at a time.
    let range = IdRange { first: 1_900_000_000 + 2 * std::process::id(), count: 2 };
    let taken = ids.take(range, "a").expect("there are two");
    let sleep = std::process::Command::new("sleep").arg("600").uid(taken).spawn();
    let mut sleep = sleep.expect("root starts it as anybody");
    ids.free("a").expect("it can be looked at");
    assert_eq!(ids.of("a").expect("it is read"), Some(taken), "its process is alive");
    // Not even when nobody knows any more whose it was.
    fs::remove_file(runs.path().join(".ids").join(taken.to_string())).expect("it is ours");
    let other = ids.take(range, "b").expect("there are two");
    assert_ne!(other, taken);
    ids.take(range, "c").expect_err("a process has the last one");
    sleep.kill().expect("it is ours");
    sleep.wait().expect("it is ours");
    assert_eq!(ids.take(range, "c").expect("its process is gone"), taken);
}

/// Set for this program when it runs itself where no file can grow, to the directory of the runs.
const ON_A_FULL_DISK: &str = "ERRAND_TEST_ON_A_FULL_DISK";

#[test]
fn a_number_whose_file_cannot_be_written_stays_free() {
    let range = IdRange { count: 1, ..RANGE };
    if let Some(runs) = std::env::var_os(ON_A_FULL_DISK) {
        let ids = ids(Path::new(&runs));
        let error = ids.take(range, "a").expect_err("no file can grow");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        return;
    }
    let runs = TempDir::new().expect("a temporary directory");
    let this = "executor::process::ids::tests::a_number_whose_file_cannot_be_written_stays_free";
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().expect("it has a path"))
        .args(["--exact", this])
        .env(ON_A_FULL_DISK, runs.path())
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    let files = || fs::read_dir(runs.path().join(".ids")).expect("it is there").count();
    assert_eq!(files(), 0);
    // One whose worker died before it could write is no better.
    fs::write(runs.path().join(".ids/5000"), "").expect("room on the disk");
    assert_eq!(ids(runs.path()).take(range, "b").expect("there is one"), 5000);
}

#[test]
fn long_names_take_numbers_of_the_range_too() {
    let runs = TempDir::new().expect("a temporary directory");
    let range = IdRange { first: u32::MAX - 7, count: 7 };
    for n in 0..range.count {
        let run = format!("{}-{n}", "\u{7f}".repeat(40));
        let id = ids(runs.path()).take(range, &run).expect("there are seven");
        assert!((range.first..u32::MAX).contains(&id), "{id}");
    }
}
