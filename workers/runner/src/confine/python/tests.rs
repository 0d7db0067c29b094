use std::os::unix::fs::symlink;

use super::*;

#[test]
fn an_installation_that_the_run_lies_in_is_not_opened_as_a_whole() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let home = dir.path().canonicalize().expect("it is there");
    let run = home.join("share/errand/runs/run-1");
    let made = ["bin", "lib/python3.12", "lib/other", "share/errand/runs/run-1", "real/bin"];
    for directory in made {
        fs::create_dir_all(home.join(directory)).expect("it is new");
    }
    for file in ["real/bin/python3.12", "lib/libpython3.12.so", "pyvenv.cfg"] {
        fs::write(home.join(file), "").expect("room on the disk");
    }
    symlink("../real/bin/python3.12", home.join("bin/python3")).expect("it is new");
    let mut opened = places(&home.join("bin/python3"), &run);
    opened.sort();
    let expected = ["bin/python3", "lib/libpython3.12.so", "lib/python3.12", "pyvenv.cfg", "real"];
    assert_eq!(opened, expected.map(|path| home.join(path)));
    assert!(opened.iter().all(|path| !run.starts_with(path)));
    // Of one that lies elsewhere, all of it.
    let opened = places(&home.join("bin/python3"), Path::new("/elsewhere"));
    assert_eq!(opened, [home.clone(), home.join("real")]);
}

#[test]
fn what_an_environment_was_made_from_is_not_opened_as_a_whole_either() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let home = dir.path().canonicalize().expect("it is there");
    for directory in ["bin", "lib/python3.12", "venv/bin"] {
        fs::create_dir_all(home.join(directory)).expect("it is new");
    }
    let config = format!("home = {}\n", home.join("bin").display());
    fs::write(home.join("venv/pyvenv.cfg"), config).expect("room on the disk");
    fs::write(home.join("venv/bin/python"), "").expect("room on the disk");
    let opened = places(&home.join("venv/bin/python"), &home.join("data/runs/run-1"));
    let expected = ["bin/python", "pyvenv.cfg", "lib/python3.12", "venv"];
    assert_eq!(opened, expected.map(|path| home.join(path)));
}
