use std::fs;

use super::*;

fn check(argv: &[&str], expected: &[&str]) {
    let root = tempfile::tempdir().expect("a temporary directory");
    let (workspace, base) = (root.path().join("workspace"), root.path().to_owned());
    fs::create_dir(&workspace).expect("the directory is new");
    for file in ["agent.sh", "both.txt", "tool", "workspace/both.txt", "workspace/here"] {
        fs::write(base.join(file), "").expect("the file is new");
    }
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let resolved: Vec<String> = resolve(&argv, &workspace, &base)
        .into_iter()
        .map(|path| {
            let text = path.to_string_lossy().into_owned();
            text.replace(&*base.to_string_lossy(), "BASE")
        })
        .collect();
    assert_eq!(resolved, expected);
}

#[test]
fn arguments_are_looked_for_in_the_working_directory_first() {
    check(
        &["/bin/sh", "agent.sh", "both.txt", "here", "word", "-x", ""],
        &["/bin/sh", "BASE/agent.sh", "both.txt", "here", "word", "-x", ""],
    );
}

#[test]
fn nothing_outside_the_agents_files_is_reached() {
    check(&["/bin/sh", "../agent.sh", "."], &["/bin/sh", "../agent.sh", "."]);
}

#[test]
fn the_program_is_looked_for_on_path_here_and_beside_the_definition() {
    check(&["sh"], &["sh"]);
    check(&["tool"], &["BASE/tool"]);
    check(&["./tool"], &["BASE/./tool"]);
    check(&["./here"], &["BASE/workspace/./here"]);
    check(&["./nowhere"], &["BASE/workspace/./nowhere"]);
    check(&["nowhere-at-all"], &["nowhere-at-all"]);
}
