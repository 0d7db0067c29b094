//! `errand tokens` beside a platform whose callers need them, and the command line with them.

use std::process::{Command, Output};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Database, Options, Platform, Postgres, script_agent};

/// A platform whose callers need tokens.
pub struct Guarded {
    pub platform: Platform,
    options: Options,
    _postgres: Option<Postgres>,
}

impl Guarded {
    pub async fn on(database: Database) -> Self {
        let postgres = (database == Database::Postgres).then(Postgres::start);
        let mut options = Options::default().set("auth.required", true);
        if let Some(postgres) = &postgres {
            options = options.set("database.url", postgres.url());
        }
        let platform = Platform::with(options.clone()).await;
        Self { platform, options, _postgres: postgres }
    }

    /// `errand tokens …` on the machine of the platform.
    pub fn tokens(&self, arguments: &[&str]) -> Output {
        let mut command = self.platform.beside(&[&["tokens"], arguments].concat());
        command.envs(self.options.env.iter().cloned()).output().expect("errand runs")
    }

    /// Makes a token.
    pub fn token(&self, name: &str, arguments: &[&str]) -> String {
        let made = self.tokens(&[&["create", "--name", name], arguments].concat());
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).expect("it is text").trim().to_owned()
    }

    /// The client with a token.
    pub fn cli(&self, token: &str) -> Command {
        let mut command = self.platform.cli();
        command.env("ERRAND_TOKEN", token);
        command
    }
}

fn run(mut command: Command, arguments: &[&str]) -> Output {
    command.args(arguments).output().expect("errand runs")
}

/// Runs a command that must be refused; what it says.
#[track_caller]
fn refused(command: Command, arguments: &[&str]) -> String {
    let output = run(command, arguments);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    String::from_utf8(output.stderr).expect("it is text")
}

#[tokio::test]
async fn tokens_let_callers_in_on_sqlite() {
    tokens_let_callers_in(Database::Sqlite).await;
}

#[tokio::test]
async fn tokens_let_callers_in_on_postgresql() {
    tokens_let_callers_in(Database::Postgres).await;
}

async fn tokens_let_callers_in(database: Database) {
    let guarded = Guarded::on(database).await;
    let platform = &guarded.platform;
    let said = platform.log();
    assert!(said.contains("make the first with `errand tokens create"), "{said}");
    let said = refused(platform.cli(), &["jobs", "list"]);
    assert!(said.contains("Authentication error: (401)"), "{said}");
    assert!(said.contains("Hint: set ERRAND_TOKEN"), "{said}");

    let root = guarded.token("root", &["--workspace", "*", "--role", "admin"]);
    let made = run(guarded.cli(&root), &["workspaces", "create", "team"]);
    assert!(made.status.success(), "{made:?}");
    let also = ["-w", "team", "--role", "submitter", "--also", "default=viewer"];
    let own = guarded.token("own", &[&also[..], &["--expires-in", "30"]].concat());
    let spec = json!({"agent": script_agent(), "input": ""}).to_string();
    let execute = ["agents", "execute", "-w", "team", "--spec", &spec, "--wait"];
    let ran = run(guarded.cli(&own), &execute);
    // The agent has no script, so it fails; that it ran is enough.
    assert_eq!(ran.status.code(), Some(10), "{ran:?}");
    let said = refused(guarded.cli(&own), &["agents", "execute", "-w", "default", "--spec", &spec]);
    let reason = "Permission denied: (403) Role 'submitter' in workspace 'default' is needed, token \
                  'own' has role 'viewer' there";
    assert!(said.contains(reason), "{said}");
    let api = platform.api().with_token(&own);
    let everywhere = "/apis/jobs/v2/workspaces/-/jobs";
    let listed = api.get(everywhere).await;
    assert_eq!(listed["data"][0]["ownership"], json!({"principal_id": "own"}), "{listed}");

    let listed = guarded.tokens(&["list", "--output-format", "json"]);
    let shown: Value = serde_json::from_slice(&listed.stdout).expect("it is JSON");
    let of = |index: usize, key: &str| shown["data"][index][key].clone();
    assert_eq!((of(0, "name"), of(1, "name")), (json!("root"), json!("own")), "{shown}");
    assert_eq!(of(1, "roles"), "viewer in default, submitter in team");
    assert!(of(0, "expires_at").is_null() && of(1, "expires_at").is_string(), "{shown}");

    let revoked = guarded.tokens(&["revoke", "own"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let (status, _) = api.ask(Method::GET, everywhere, None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(guarded.tokens(&["revoke", "nobody"]).status.code(), Some(4));

    // No token stands anywhere but where it was given.
    let everything = [platform.log(), String::from_utf8_lossy(&listed.stdout).into_owned()];
    for token in [&root, &own] {
        assert!(everything.iter().all(|text| !text.contains(&**token)));
        assert!(!holds(&platform.data(), token.as_bytes()), "it is in a file of the platform");
    }
}

/// Whether any file below a directory has these bytes.
fn holds(directory: &std::path::Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => holds(&path, bytes),
            Ok(kind) if kind.is_file() => {
                let content = std::fs::read(&path).unwrap_or_default();
                content.windows(bytes.len()).any(|window| window == bytes)
            }
            _ => false,
        }
    })
}

#[tokio::test]
async fn wrong_words_about_tokens_are_refused() {
    let guarded = Guarded::on(Database::Sqlite).await;
    guarded.token("taken", &["--workspace", "default", "--role", "viewer"]);
    let default = ["create", "--workspace", "default"];
    let viewer = [&default[..], &["--role", "viewer"]].concat();
    for (arguments, text) in [
        (vec!["create", "--role", "viewer"], "name the workspace: --workspace NAME"),
        (vec!["create", "-w", "nowhere", "--role", "viewer"], "workspace 'nowhere' does not exist"),
        ([&default[..], &["--role", "owner"]].concat(), "there are viewer, submitter and admin"),
        ([&viewer[..], &["--also", "team"]].concat(), "expected WORKSPACE=ROLE"),
        ([&viewer[..], &["--also", "nowhere=viewer"]].concat(), "workspace 'nowhere' does not"),
        ([&viewer[..], &["--name", "taken"]].concat(), "there is, or was, a token 'taken'"),
        ([&viewer[..], &["--name", "Not A Name"]].concat(), "'Not A Name' is no name"),
        ([&viewer[..], &["--expires-in", "0"]].concat(), "0 is not in 1..=36500"),
    ] {
        let refused = guarded.tokens(&arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(text), "{arguments:?}: {said}");
        assert!(refused.stdout.is_empty(), "{arguments:?}");
    }
}

/// A platform that is started again knows its tokens, and a job that it finds goes on.
#[tokio::test]
async fn tokens_outlive_the_platform() {
    let mut guarded = Guarded::on(Database::Sqlite).await;
    let root = guarded.token("root", &["--workspace", "*", "--role", "admin"]);
    let api = guarded.platform.api().with_token(&root);
    let job = api.script("sleep 3; echo done", json!({})).await;
    job.reaches("active", Duration::from_secs(30)).await;
    guarded.platform.kill().await;
    guarded.platform.start_again(guarded.options.clone());
    let said = guarded.platform.log();
    assert!(said.contains("\"tokens.valid\":1"), "{said}");
    let job = job.at(guarded.platform.api().with_token(&root));
    assert_eq!(job.ends(Duration::from_secs(60)).await["status"], "completed");
}
