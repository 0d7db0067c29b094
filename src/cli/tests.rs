use clap::{Parser as _, ValueEnum as _};

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
    accepts("records rebuild --data-dir d --config f");
    accepts("tokens create --workspace w --role viewer");
    accepts("tokens create -w * --role admin --also v=viewer --name n --expires-in 9 --config f");
    accepts("tokens list --data-dir d");
    accepts("tokens revoke n");
    accepts(
        "nats config a b --output d --rotate a --rotate errand --listen 0.0.0.0:4222 \
         --store-dir d --publish events.> --config f",
    );
    accepts("nats config --workspace a");
    accepts("explain timeout");
    accepts("config view");
    accepts("config set --base-url http://h:1 --workspace w");
    accepts("config use-context n");
    accepts("config current-context");
    accepts("config delete-context n");
    accepts("config show --platform");
    accepts("workspaces create w --description d --exist-ok");
    accepts("workspaces list --all-pages --sort name");
    accepts("workspaces update w --description d");
    accepts("agents register --name n --agent-config f --force");
    accepts("agents list --page 2 --page-size 5 --sort -name");
    accepts(
        "agents execute --agent a --input i --name n --wait --environment e \
         --workdir.base-workdir d/f --timeout-seconds 5 --no-auto-telemetry --image i \
         --post-run-action.kind k --spec {} --spec-file f --profile p --description d \
         --idempotency-key k",
    );
    accepts("agents execute --spec-file - --input-file f");
    accepts("agents post-run-actions list");
    for collection in ["environments", "environment-specs", "compute-specs"] {
        accepts(&format!("{collection} create --file f --name n"));
        accepts(&format!("{collection} list --all-pages"));
        accepts(&format!("{collection} get n"));
        accepts(&format!("{collection} delete n"));
    }
    accepts("secrets create n --from-env V");
    accepts("secrets update n --from-file -");
    accepts("secrets list --all-pages");
    accepts("filesets create n --purpose dataset --metadata {} --exist-ok");
    accepts("filesets list --filter.name n --filter {} --page-size 7");
    accepts("filesets update n --description d");
    accepts("files upload src ref#path");
    accepts("files download ref -o dir");
    accepts(
        "jobs list --filter.source s --filter.status active --filter.status error \
         --filter.name n --filter.project p --filter.workspace w --filter {} --sort -created_at",
    );
    accepts("jobs list -w - --all-pages --no-truncate");
    accepts("jobs get-status j");
    accepts("jobs watch j --timeout 5 --poll-interval 3 --no-history");
    accepts("jobs tail j -n 5 -f");
    accepts("jobs get-logs j --limit 5 --page-cursor c");
    accepts("jobs get-logs j --all-pages");
    accepts("jobs rerun j --name n --idempotency-key k --snapshot");
    accepts("jobs rerun j --latest --input i --workdir-from output");
    accepts("batch run f.jsonl --concurrency 5 -o d --resume --retry-failed timeout,worker_lost");
    accepts("batch run f.jsonl --group g --results output_workdir");
    accepts("batch watch g");
    accepts("batch list --all-pages");
    accepts("batch get g");
    accepts("jobs pause j");
    accepts("jobs resume j");
    accepts("jobs steps list j");
    accepts("jobs steps get execute-agent --job j");
    accepts("jobs results list j");
    accepts("jobs results get r --job j");
    accepts("jobs results changes j");
    accepts("jobs results download r --job j -o f --output-format json");
    accepts("jobs list-execution-profiles");
    accepts("jobs queue");
    accepts("--base-url http://h jobs get j -w other");
    accepts("completions bash");
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
        "jobs rerun",
        "jobs rerun j --name",
        "jobs results list",
        "jobs results download --job j",
        "jobs results download r --job",
        "jobs results get r --job",
        "jobs get-logs",
        "jobs pause",
        "jobs resume",
        "jobs steps list",
        "environments get",
        "compute-specs delete",
        "environment-specs create --file f --name",
        "workspaces update --description d",
        "secrets update",
        "filesets update",
        "config delete-context",
        "jobs list --workspace",
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
    check(refused(reqwest::StatusCode::BAD_GATEWAY).into(), Exit::Unreachable);
    let unreachable = client::Error::Unreachable {
        base: String::new(),
        reason: String::new(),
        sent: false,
        request: String::new(),
    };
    check(anyhow::Error::from(unreachable).context("while watching"), Exit::Unreachable);
    check(Usage(String::new()).into(), Exit::Usage);
    check(anyhow::anyhow!("other"), Exit::Failed);
}

#[test]
fn a_person_is_told_what_happened_and_what_to_do() {
    let refused = client::Error::Refused {
        status: reqwest::StatusCode::NOT_FOUND,
        detail: "Agent 'x' not found".to_owned(),
        request: "GET http://h/x".to_owned(),
    };
    let error = anyhow::Error::from(refused).context("while looking");
    let told = super::told(&error);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[0], "errand: while looking: Not found: (404) Agent 'x' not found");
    assert_eq!(lines[1], "Request: GET http://h/x");
    assert!(lines[2].starts_with("Hint: "), "{told}");
    assert_eq!(super::told(&anyhow::anyhow!("other")), "errand: other");
}

#[test]
fn every_shell_gets_a_completion_script_that_knows_the_commands() {
    for shell in clap_complete::Shell::value_variants() {
        let script = super::completions::script(*shell).expect("it is text");
        assert!(script.contains("post-run-actions"), "{shell}: {script}");
    }
}

/// The help of a command as a terminal of 100 columns shows it.
fn help(words: &[&str]) -> String {
    let mut command = super::command().term_width(100);
    command.build();
    let mut at = &mut command;
    for word in words {
        at = at.find_subcommand_mut(word).expect("a command");
    }
    at.render_help().to_string()
}

#[test]
fn the_help_reads_well() {
    insta::assert_snapshot!("help", help(&[]));
    insta::assert_snapshot!("help_agents_execute", help(&["agents", "execute"]));
}

/// A command without a line of help is one that nobody finds.
#[test]
fn every_command_and_every_flag_says_what_it_is_for() {
    fn check(command: &clap::Command) {
        let name = command.get_display_name().unwrap_or_default();
        assert!(command.get_about().is_some(), "'{name}' has no help");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "'{name}': {} has no help", argument.get_id());
        }
        command.get_subcommands().for_each(check);
    }
    let mut command = super::command();
    command.build();
    check(&command);
}
