use clap::Parser as _;

use super::{Cli, Usage, exit_of};
use crate::client;
use crate::exit::Exit;

#[test]
fn the_grammar_is_sound() {
    super::command().debug_assert();
}

#[track_caller]
fn accepts(line: &str) {
    let words = std::iter::once("errand").chain(line.split_whitespace());
    if let Err(error) = Cli::try_parse_from(words) {
        panic!("{line}: {error}");
    }
}

/// The spellings that the interface document and the reference promise.
#[test]
fn documented_commands_are_accepted() {
    accepts("up --data-dir d --listen 127.0.0.1:0 --slots 2 --config f");
    accepts("serve");
    accepts("worker --steps resolve,stage,invoke,act,archive --slots 4");
    accepts("doctor");
    accepts("topology --diagram");
    accepts("explain timeout");
    accepts("config view");
    accepts("config set --base-url http://h:1 --workspace w");
    accepts("config use-context n");
    accepts("config show --platform");
    accepts("workspaces create w");
    accepts("agents register --name n --agent-config f --force");
    accepts(
        "agents execute --agent a --input i --name n --wait --environment e \
         --workdir.base-workdir d/f --timeout-seconds 5 --no-auto-telemetry --image i \
         --post-run-action.kind k --spec {} --spec-file f",
    );
    accepts("secrets create n --from-env V");
    accepts("files upload src ref#path");
    accepts("files download ref -o dir");
    accepts("jobs list --filter.source s --filter.status active --filter {}");
    accepts("jobs watch j");
    accepts("jobs tail j -n 5 -f");
    accepts("jobs results download r --job j -o f --output-format json");
    accepts("--base-url http://h jobs get j -w other");
}

#[test]
fn a_name_that_is_none_is_a_usage_error() {
    for line in [
        "jobs get",
        "jobs get-status",
        "jobs watch",
        "jobs tail",
        "jobs cancel",
        "jobs delete",
        "jobs facts",
        "jobs results list",
        "jobs results download --job j",
        "jobs results download r --job",
        "agents get",
        "agents delete",
        "agents register --agent-config f --name",
        "workspaces create",
        "workspaces get",
        "workspaces delete",
        "secrets create",
        "secrets get",
        "secrets delete",
        "filesets create",
        "filesets get",
        "filesets delete",
        "config use-context",
    ] {
        for name in ["", "."] {
            let words = std::iter::once("errand").chain(line.split_whitespace()).chain([name]);
            let error = Cli::try_parse_from(words).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line} {name:?}: {error}");
            assert!(error.to_string().contains("invalid value"), "{line} {name:?}: {error}");
        }
    }
}

#[test]
fn errors_end_the_program_as_documented() {
    let refused =
        |status| client::Error::Refused { status, detail: String::new(), request: String::new() };
    let check = |error: anyhow::Error, expected| assert_eq!(exit_of(&error), expected, "{error}");
    check(refused(reqwest::StatusCode::CONFLICT).into(), Exit::Refused);
    check(refused(reqwest::StatusCode::NOT_FOUND).into(), Exit::NotFound);
    let unreachable = client::Error::Unreachable { base: String::new(), reason: String::new() };
    check(anyhow::Error::from(unreachable).context("while watching"), Exit::Unreachable);
    check(Usage(String::new()).into(), Exit::Usage);
    check(anyhow::anyhow!("other"), Exit::Failed);
}
