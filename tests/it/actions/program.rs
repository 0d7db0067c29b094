//! Programs as actions.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{LATER, SOON, failed, followed_by};
use crate::harness::{Options, Platform, eventually, open_directory, running_with_argument};

const KIND: &str = "insights.analysis";

/// A directory of actions: the example, and `insights.analysis`, a shell script.
fn actions(directory: &Path, script: &str, more: Value) -> Options {
    let own = directory.join("insights");
    fs::create_dir_all(&own).expect("a directory");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/actions/summary");
    std::os::unix::fs::symlink(example, directory.join("summary")).expect("a link");
    let mut manifest = json!({
        "kind": KIND, "title": "Insights", "description": "Analyses the run.",
        "command": ["/bin/sh", "run.sh"],
    });
    for (key, value) in more.as_object().expect("an object") {
        manifest[key] = value.clone();
    }
    fs::write(own.join("action.json"), manifest.to_string()).expect("a manifest");
    fs::write(own.join("run.sh"), script).expect("a program");
    installed(directory)
}

fn installed(directory: &Path) -> Options {
    let mut options = Options::default();
    let directory = directory.display().to_string();
    options.env.push(("ERRAND__ACTIONS__DIRECTORY".to_owned(), directory));
    options
}

struct Installed {
    platform: Platform,
    directory: tempfile::TempDir,
}

async fn with(script: &str, more: Value) -> Installed {
    let directory = open_directory();
    let platform = Platform::with(actions(directory.path(), script, more)).await;
    Installed { platform, directory }
}

impl Installed {
    /// Kills the platform and starts it again.
    async fn restarted(mut self) -> Self {
        self.platform.kill().await;
        let platform = self.platform.restart(installed(self.directory.path())).await;
        Self { platform, ..self }
    }
}

#[tokio::test]
async fn what_a_program_leaves_becomes_results() {
    let script = r#"cat > "$ERRAND_RESULTS/told.json"; mkdir "$ERRAND_RESULTS/tree"
        cp -r output_workdir "$ERRAND_RESULTS/tree/copy"; pwd > "$ERRAND_RESULTS/where.txt"
        env | sort > "$ERRAND_RESULTS/env.txt"; echo said; echo complained >&2
        echo "the key is $API_KEY""#;
    let secrets = json!({"secrets": {"API_KEY": "insights-key"}});
    let installed = with(script, secrets).await;
    let platform = &installed.platform;
    let api = platform.api();
    let key = json!({"name": "insights-key", "value": "correct-horse-battery"});
    let path = "/apis/secrets/v2/workspaces/default/secrets";
    let (made, answer) = api.ask(reqwest::Method::POST, path, Some(key)).await;
    assert!(made.is_success(), "{answer}");
    let job = followed_by(&api, "echo answer; echo kept > kept", KIND, json!({"depth": 3})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    let own = ["env.txt", "fabric_run_result", "input_workdir", "output_artifacts"];
    let all = [&own[..], &["output_workdir", "told.json", "tree", "where.txt"]].concat();
    assert_eq!(job.result_names().await, all);

    let told = job.json("told.json").await;
    assert_eq!((&told["job"], &told["job_id"]), (&json!(job.name), &json!(job.id.http())));
    assert_eq!((&told["workspace"], &told["agent"]), (&json!("default"), &json!("default/script")));
    assert_eq!(told["config"], json!({"depth": 3}));
    assert_eq!(told["agent_config"]["name"], "script");
    assert_eq!(told["fabric_run_result"], job.json("fabric_run_result").await);
    assert!(told["deadline"].as_str().is_some_and(|at| at.ends_with('Z')), "{told}");

    let tree = job.directory("tree").await;
    assert_eq!(fs::read_to_string(tree.path().join("copy/kept")).expect("it is there"), "kept\n");
    for name in ["told.json", "tree"] {
        let digest = hex::encode(Sha256::digest(job.download(name).await));
        assert_eq!(job.result(name).await["sha256"], json!(digest), "{name}");
    }
    let env = String::from_utf8(job.download("env.txt").await).expect("it is text");
    assert!(!env.contains("ERRAND__ACTIONS"), "{env}");
    assert!(env.contains("API_KEY=correct-horse-battery"), "{env}");
    let log = job.log().await.join("\n");
    let marked = "results: env.txt holds the value of a secret: the result is marked.";
    for line in ["said", "[stderr] complained", "the key is ***", marked] {
        assert!(log.contains(line), "{log}");
    }
    assert!(!log.contains("correct-horse-battery"), "{log}");
    let broker = platform.broker().await;
    let (_, acted) = job.facts(&*broker).await.remove(4);
    let acted = String::from_utf8(acted.expect("it stands").payload.to_vec()).expect("text");
    assert!(acted.contains(r#""secret_detected":["env.txt"]"#), "{acted}");
}

/// The working directory that it is given may hold what the agent was given.
#[tokio::test]
async fn a_program_is_kept_from_telling_the_agents_secrets() {
    let script = r#"cat output_workdir/conf; cp -r output_workdir "$ERRAND_RESULTS/copy"
        echo "${S:-unset}" > "$ERRAND_RESULTS/env.txt"; echo "bad key $(cat output_workdir/conf)" >&2
        exit 3"#;
    let installed = with(script, json!({})).await;
    let platform = &installed.platform;
    let api = platform.api();
    let secret = "correct-horse-battery";
    api.secret("agents-key", secret).await;
    let more = json!({
        "environment": {"environment_spec": {"secrets": {"S": "agents-key"}}},
        "post_run_action": {"kind": KIND, "config": {}},
    });
    let job = api.script("printf %s \"$S\" > conf; echo done", more).await;
    failed(&job, "bad key ***").await;
    let result = job.result("copy").await;
    assert_eq!(result["secret_detected"], json!(["conf"]), "{result}");
    assert_eq!(result["secret_search_complete"], json!(true), "{result}");
    assert_eq!(job.download("env.txt").await, b"unset\n");
    let log = job.log().await.join("\n");
    assert!(log.contains("bad key ***") && !log.contains(secret), "{log}");
    let facts = job.facts(&*platform.broker().await).await;
    let told = facts.iter().filter_map(|(_, fact)| fact.as_ref());
    for fact in told {
        assert!(!String::from_utf8_lossy(&fact.payload).contains(secret));
    }
}

#[tokio::test]
async fn the_example_runs() {
    let installed = with("exit 1", json!({})).await;
    let platform = &installed.platform;
    let api = platform.api();
    let job = followed_by(&api, "echo x > a; echo done", "examples.summary", json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let files = String::from_utf8(job.download("files.txt").await).expect("it is text");
    assert_eq!(files, "./a\n./agent.sh\n");
    let listed = platform.cli().args(["agents", "post-run-actions", "list"]).output();
    let listed: Value = serde_json::from_slice(&listed.expect("errand runs").stdout).expect("JSON");
    assert!(listed.to_string().contains("examples.summary"), "{listed}");
}

#[tokio::test]
async fn case_a4_a_program_that_fails_fails_the_job_and_the_results_stay() {
    let script = "echo partly > \"$ERRAND_RESULTS/partly.txt\"\n\
                  test -f output_workdir/report.md || { echo 'no report.md' >&2; exit 7; }";
    let installed = with(script, json!({"timeout_seconds": 5})).await;
    let platform = &installed.platform;
    let api = platform.api();
    let job = followed_by(&api, "echo n > notes.md; echo ok", KIND, json!({})).await;
    failed(&job, "exited with code 7: no report.md").await;
    assert_eq!(job.download("partly.txt").await, b"partly\n", "what it saved stays too");
}

#[tokio::test]
async fn a_program_has_its_time_and_its_names() {
    let script = "mkdir \"$ERRAND_RESULTS/output_workdir\"; ln -s / \"$ERRAND_RESULTS/link\"\n\
                  echo ok > \"$ERRAND_RESULTS/fine\"\n\
                  if [ -f output_workdir/slow ]; then (setsid sleep 7351 &); sleep 7352; fi";
    let installed = with(script, json!({"timeout_seconds": 5})).await;
    let platform = &installed.platform;
    let api = platform.api();
    let named = followed_by(&api, "echo ok", KIND, json!({})).await;
    let slow = followed_by(&api, "touch slow; echo ok", KIND, json!({})).await;
    failed(&named, "result 'link' cannot be read").await;
    failed(&slow, "it ran longer than 5 s").await;
    for job in [named, slow] {
        assert_eq!(job.download("fine").await, b"ok\n");
    }
    for left in ["7351", "7352"] {
        assert!(running_with_argument(left).is_empty(), "sleep {left} is left");
    }
}

#[tokio::test]
async fn nothing_follows_an_agent_that_failed() {
    let scratch = open_directory();
    let runs = scratch.path().join("runs");
    let Installed { platform, .. } =
        with(&format!("echo ran > {}", runs.display()), json!({})).await;
    let job = followed_by(&platform.api(), "exit 3", KIND, json!({})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "agent_failed", "{record}");
    assert!(!runs.exists());
}

/// What a job was admitted with is looked at again where it is about to run.
#[tokio::test]
async fn an_action_that_is_uninstalled_or_changed_keeps_its_agent_from_being_run() {
    let directory = open_directory();
    let changed = directory.path().join("changed");
    let write = |schema: Value| {
        let manifest = json!({
            "kind": "changed.schema", "title": "", "description": "", "command": ["/bin/true"],
            "config_schema": schema,
        });
        fs::write(changed.join("action.json"), manifest.to_string()).expect("a manifest");
    };
    fs::create_dir(&changed).expect("a directory");
    write(json!(true));
    let options = actions(directory.path(), "exit 0", json!({})).hold_at("invoke:received");
    let mut platform = Platform::with(options).await;
    let runs = platform.scratch().join("runs");
    let script = format!("echo run >> {}", runs.display());
    let api = platform.api();
    let depth = json!({"depth": 3});
    let uninstalled = followed_by(&api, &script, KIND, json!({})).await;
    let changes = followed_by(&api, &script, "changed.schema", depth).await;
    platform.holds().await;
    platform.kill().await;
    fs::remove_dir_all(directory.path().join("insights")).expect("it is removed");
    write(json!({"additionalProperties": false}));
    let platform = platform.restart(installed(directory.path())).await;
    for (job, words) in [
        (uninstalled, "Unknown post-run action 'insights.analysis'."),
        (changes, "Invalid config for post-run action 'changed.schema': depth: "),
    ] {
        let record = job.at(platform.api()).ends(LATER).await;
        assert_eq!(record["error_details"]["code"], "action_missing", "{record}");
        assert!(record["error_details"].to_string().contains(words), "{record}");
    }
    assert!(!runs.exists(), "no agent was run");
}

/// A program that says that it runs, and goes on until it is let go.
fn waiting(scratch: &Path) -> (String, PathBuf, PathBuf) {
    let (runs, go) = (scratch.join("runs"), scratch.join("go"));
    let script = format!(
        "echo run >> {}; until [ -f {} ]; do sleep 0.1; done; echo kept > \"$ERRAND_RESULTS/kept\"",
        runs.display(),
        go.display()
    );
    (script, runs, go)
}

async fn exists(path: &Path) {
    let there = || async { path.is_file().then_some(()) };
    eventually("the action runs", Duration::from_secs(30), there).await;
}

/// The platform may die: the action goes on without it, and is found again.
#[tokio::test]
async fn killed_while_a_program_runs() {
    let scratch = open_directory();
    let (script, runs, go) = waiting(scratch.path());
    let installed = with(&script, json!({})).await;
    let job = followed_by(&installed.platform.api(), "echo ok", KIND, json!({})).await;
    exists(&runs).await;
    let installed = installed.restarted().await;
    fs::write(go, "").expect("it is let go");
    let job = job.at(installed.platform.api());
    assert_eq!(job.ends(LATER).await["status"], "completed");
    assert_eq!(job.download("kept").await, b"kept\n");
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n", "it ran once");
}

/// A worker that comes back looks after each program that runs, also with fewer slots than before:
/// the lease of one that waited for a slot would run out.
#[tokio::test]
async fn programs_that_run_need_no_slot() {
    let scratch = open_directory();
    let script = format!(
        r#"cd {}; who=$(sed 's/.*"who":"\([a-z]*\)".*/\1/'); touch $who.runs
        until [ -f $who.go ]; do sleep 0.1; done"#,
        scratch.path().display()
    );
    let mut installed = with(&script, json!({})).await;
    let api = installed.platform.api();
    let first = followed_by(&api, "echo ok", KIND, json!({"who": "first"})).await;
    exists(&scratch.path().join("first.runs")).await;
    let second = followed_by(&api, "echo ok", KIND, json!({"who": "second"})).await;
    exists(&scratch.path().join("second.runs")).await;
    installed.platform.kill().await;
    let options = Options { slots: 1, ..self::installed(installed.directory.path()) };
    let platform = installed.platform.restart(options).await;
    for (job, name) in [(second, "second.go"), (first, "first.go")] {
        fs::write(scratch.path().join(name), "").expect("it is let go");
        assert_eq!(job.at(platform.api()).ends(LATER).await["status"], "completed", "{name}");
    }
}

/// With its supervisor, nobody is left who could know how it ended: it has failed, and it is not
/// run again.
#[tokio::test]
async fn killed_with_its_supervisor_while_a_program_runs() {
    let scratch = open_directory();
    let (script, runs, _) = waiting(scratch.path());
    let mut installed = with(&script, json!({})).await;
    let job = followed_by(&installed.platform.api(), "echo ok", KIND, json!({})).await;
    exists(&runs).await;
    installed.platform.kill().await;
    let run = installed.platform.data().join("runs").join(format!("{}-2", job.id));
    for supervisor in running_with_argument(run.to_str().expect("a path")) {
        let pid = i32::try_from(supervisor).ok().and_then(Pid::from_raw).expect("a process id");
        // The host ends with its supervisor, maybe before its turn comes here.
        let _ = kill_process(pid, Signal::KILL);
    }
    let directory = installed.directory;
    let platform = installed.platform.restart(self::installed(directory.path())).await;
    let job = job.at(platform.api());
    job.ends(LATER).await;
    failed(&job, "it was interrupted: its supervisor died while it ran").await;
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n", "it ran once");
}

#[test]
fn a_wrong_manifest_is_said_at_the_start() {
    let directory = open_directory();
    let options = actions(directory.path(), "", json!({"heading": "x"}));
    let up = std::process::Command::new(env!("CARGO_BIN_EXE_errand"))
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.path().join("data"))
        .envs(options.env)
        .output()
        .expect("errand runs");
    let said = String::from_utf8_lossy(&up.stderr);
    assert!(!up.status.success() && said.contains("insights/action.json"), "{said}");
    assert!(said.contains("unknown field `heading`"), "{said}");
}
