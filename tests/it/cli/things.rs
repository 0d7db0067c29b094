//! Workspaces, secrets, filesets and the parts of a job: made, shown, changed, deleted.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;

use super::{each, fails, json as ask, run, text};
use crate::harness::Platform;

#[tokio::test]
async fn workspaces_and_filesets_are_changed_and_made_once() {
    let platform = Platform::start().await;
    ask(&platform, &["workspaces", "create", "team", "--description", "old"]);
    let said = fails(&platform, &["workspaces", "create", "team"], 3);
    assert!(said.contains("Conflict: (409) Workspace 'team' already exists"), "{said}");
    let there = ask(&platform, &["workspaces", "create", "team", "--exist-ok"]);
    assert_eq!(there["description"], "old", "{there}");
    let changed = ask(&platform, &["workspaces", "update", "team", "--description", "new"]);
    assert_eq!(changed["description"], "new", "{changed}");

    let create =
        ["filesets", "create", "data", "--purpose", "dataset", "--custom-fields", r#"{"a":1}"#];
    let made = ask(&platform, &create);
    assert_eq!((&made["purpose"], &made["custom_fields"]["a"]), (&json!("dataset"), &json!(1)));
    let there = ask(&platform, &["filesets", "create", "data", "--exist-ok"]);
    assert_eq!(there["id"], made["id"]);
    let changed = ask(&platform, &["filesets", "update", "data", "--description", "d"]);
    assert_eq!((&changed["description"], &changed["purpose"]), (&json!("d"), &json!("dataset")));
    fails(&platform, &["filesets", "update", "data"], 2);
    fails(&platform, &["filesets", "update", "data", "--metadata", "[]"], 2);
    ask(&platform, &["filesets", "delete", "data"]);
    fails(&platform, &["filesets", "get", "data"], 4);
}

/// A value comes from a variable, a file or stdin, and is never shown. That it is the right one is
/// seen by the variable's limit: a value that is too long is refused with its length.
#[tokio::test]
async fn secrets_take_their_value_from_a_variable_a_file_or_stdin() {
    let platform = Platform::start().await;
    let with_stdin = |args: &[&str], value: &str| {
        let mut command = platform.cli();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("errand runs");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(value.as_bytes()).expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    };
    let made = with_stdin(&["secrets", "create", "token", "--description", "d"], "s3cr3t\n");
    assert!(made.status.success(), "{made:?}");
    assert!(!text(made.stdout).contains("s3cr3t"));
    let long = "x".repeat(200_000);
    for args in [
        &["secrets", "update", "token"][..],
        &["secrets", "update", "token", "--from-file", "-"],
        &["secrets", "create", "other", "--from-file", "-"],
    ] {
        let refused = with_stdin(args, &long);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        let said = text(refused.stderr);
        assert!(said.contains("Secret value has 200000 bytes") && !said.contains("xxxx"), "{said}");
    }
    let file = platform.scratch().join("value");
    std::fs::write(&file, "from a file\n").expect("a file");
    ask(&platform, &["secrets", "update", "token", "--from-file", file.to_str().expect("a path")]);
    // Only the description: stdin is not read, and it is not there to be read.
    let changed = ask(&platform, &["secrets", "update", "token", "--description", "e"]);
    assert_eq!(changed["description"], "e", "{changed}");
    let said = fails(&platform, &["secrets", "update", "token", "--from-env", "NOT_SET_AT_ALL"], 2);
    assert!(said.contains("NOT_SET_AT_ALL is not set"), "{said}");
    let mut command = platform.cli();
    command.args(["secrets", "create", "other", "--from-env", "KEY"]);
    let refused = command.env("KEY", OsStr::from_bytes(b"s3cr3t\xff")).output();
    let refused = refused.expect("errand runs");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = text(refused.stderr);
    assert!(said.contains("KEY is not UTF-8") && !said.contains("s3cr3t"), "{said}");
    assert_eq!(each(&ask(&platform, &["secrets", "list"]), "name"), ["token"]);
    assert!(run(&platform, &["secrets", "delete", "token"]).status.success());
    fails(&platform, &["secrets", "get", "token"], 4);
}

#[tokio::test]
async fn files_go_up_and_come_down_as_they_were() {
    let platform = Platform::start().await;
    let up = platform.scratch().join("up");
    fs::create_dir_all(up.join("deep")).expect("directories");
    // No server keeps what the last one's set-id bit says.
    for (path, mode, kept) in
        [("plain.txt", 0o640, 0o640), ("deep/run.sh", 0o755, 0o755), ("set-id", 0o4711, 0o711)]
    {
        fs::write(up.join(path), path).expect("a file");
        fs::set_permissions(up.join(path), Permissions::from_mode(mode)).expect("a mode");
        let sent = ask(&platform, &["files", "upload", "up/", "team"]);
        assert_eq!(sent["fileset"], "team", "{sent}");
        ask(&platform, &["files", "download", "team", "-o", "down"]);
        let down = platform.scratch().join("down").join(path);
        assert_eq!(fs::read_to_string(&down).expect("it came down"), path);
        let mode = down.metadata().expect("it came down").permissions().mode();
        assert_eq!(mode & 0o7777, kept, "{path}");
    }
    let listed = ask(&platform, &["files", "list", "team#deep"]);
    assert_eq!(each(&listed, "path"), ["deep/run.sh"]);
    ask(&platform, &["files", "delete", "team#set-id"]);
    assert_eq!(each(&ask(&platform, &["files", "list", "team"]), "path").len(), 2);
    fails(&platform, &["files", "delete", "team"], 2);
    fails(&platform, &["files", "download", "team#nothing", "-o", "down"], 1);
}

#[tokio::test]
async fn the_parts_of_a_job_are_shown() {
    let platform = Platform::start().await;
    let job = platform.api().script("echo hello", json!({})).await;
    let name = job.name.as_str();
    assert!(run(&platform, &["jobs", "watch", name]).status.success());
    let steps = ask(&platform, &["jobs", "steps", "list", name]);
    assert_eq!(each(&steps, "name"), ["execute-agent"]);
    let step = ask(&platform, &["jobs", "steps", "get", "execute-agent", "--job", name]);
    assert_eq!(step["status"], "completed", "{step}");
    let result = ask(&platform, &["jobs", "results", "get", "output_workdir", "--job", name]);
    assert_eq!(result["complete"], true, "{result}");
    let oldest_first = ask(&platform, &["jobs", "results", "list", name, "--sort", "created_at"]);
    assert_eq!(each(&oldest_first, "name")[0], "input_workdir");
    // A job that has ended is answered unchanged.
    for verb in ["pause", "resume", "cancel"] {
        assert_eq!(ask(&platform, &["jobs", verb, name])["status"], "completed", "{verb}");
    }
    let profiles = ask(&platform, &["jobs", "list-execution-profiles"]);
    assert_eq!(profiles[0]["profile"], "default", "{profiles}");
    let actions = ask(&platform, &["agents", "post-run-actions", "list"]);
    assert!(each(&actions, "kind").contains(&"agents.noop".to_owned()), "{actions}");
    assert!(run(&platform, &["jobs", "delete", name]).status.success());
    fails(&platform, &["jobs", "get", name], 4);
}
