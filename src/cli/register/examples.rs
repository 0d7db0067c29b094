//! The example agents of `deploy/examples`: each can be registered, and the scripts do what
//! their first lines say.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{Register, own_files};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples").join(name)
}

/// Runs an example's script as the script harness does: input on stdin, then closed.
fn run(name: &str, dir: &Path, input: &str) -> Output {
    let mut child = Command::new("/bin/sh")
        .arg(example(name).join("agent.sh"))
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh is there");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("the input is taken");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn check(question: &str, answer: Option<&str>) {
    let output = run("calculator", Path::new("/"), question);
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match answer {
        Some(answer) => {
            assert_eq!((said.as_str(), output.status.success()), (answer, true), "{question}")
        }
        None => {
            assert!(!output.status.success() && said.is_empty(), "{question}: {said}");
            assert!(output.stderr.starts_with(b"calculator: "), "{question}");
        }
    }
}

#[test]
fn every_example_can_be_registered() {
    for name in ["calculator", "repo-report", "claude", "codex", "deepagents"] {
        let agent_config = example(name).join("agent.yaml");
        let register =
            Register { name: name.to_owned(), agent_config, description: None, force: false };
        let body = register.body().expect(name);
        assert_eq!(body["config"]["name"], name);
        assert_eq!(body["config_format"], "nemo-agents-spec-v1");
        assert!(body["config"].get("helix_registration").is_none(), "{body}");
        own_files(&example(name)).expect(name);
    }
}

#[test]
fn the_calculator_answers() {
    check("What is 12 multiplied by 8?", Some("96"));
    check("6*7", Some("42"));
    check("3 plus 4 minus 2", Some("5"));
    check("what is 7 - 9?", Some("-2"));
    check("What is 100 divided by 8", Some("12.5"));
    check("1.5 + 1.5.\n", Some("3"));
    check("12×8", Some("96"));
}

#[test]
fn the_calculator_says_what_it_cannot_answer() {
    check("1/0", None);
    check("hello", None);
    check("2 +", None);
}

#[test]
fn the_report_counts_what_is_there() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    };
    write("src/main.rs", "fn main() {\n    // TODO: all of it\n}\n");
    write("src/a b.rs", "x\n");
    write(".hidden", "");
    write("Makefile", "all:\n");
    let output = run("repo-report", dir.path(), "Describe this.");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(output.stdout, b"4 files with 5 lines; see report.md\n");
    assert!(errors.contains("asked: Describe this."), "{errors}");

    let report = std::fs::read_to_string(dir.path().join("report.md")).expect("it is written");
    for line in [
        "- files: 4",
        "- lines: 5",
        "- lines with TODO or FIXME: 1",
        "| rs | 2 | 4 |",
        "| (none) | 2 | 1 |",
        "| src/main.rs | 37 |",
        "| src/a b.rs | 2 |",
        "- src/main.rs:2:    // TODO: all of it",
    ] {
        assert!(report.lines().any(|found| found == line), "'{line}' is missing in\n{report}");
    }
}

#[test]
fn an_empty_directory_is_no_report() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let output = run("repo-report", dir.path(), "");
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
}
