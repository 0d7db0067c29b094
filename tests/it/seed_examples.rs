//! The examples of the documentation, command by command: registering an agent that says what its
//! jobs get and what follows them, and the ways to run it, to find its runs and to go on from them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{each, fails, json as ask, register_greeter, run};
use crate::harness::{Options, Platform, script_agent};

/// An agent that repeats what it was asked, since when, and what its own files say.
const AGENT: &str = "config_format: nemo-agents-spec-v1
name: researcher
default_harness: script
harnesses:
  script:
    kind: script
    settings: {command: [/bin/sh, agent.sh]}
helix_registration:
  context_schema:
    type: object
    properties:
      since: {type: string, format: date-time}
    required: [since]
    additionalProperties: false
  default_input: What is new?
  post_run_actions: [insights.analysis]
";
const SCRIPT: &str = "cat; grep -o 'since\":\"[^\"]*' \"$ERRAND_CONTEXT\"; cat ../skills/style.md";

/// A platform on which a shell script is installed as the action `insights.analysis`.
struct Installed {
    platform: Platform,
    _actions: TempDir,
}

impl Installed {
    async fn start() -> Self {
        let actions = TempDir::new().expect("a temporary directory");
        let own = actions.path().join("insights");
        let manifest = json!({
            "kind": "insights.analysis", "title": "Insights", "description": "Analyses the run.",
            "command": ["/bin/sh", "analyse.sh"],
        });
        fs::create_dir(&own).expect("a directory");
        fs::write(own.join("action.json"), manifest.to_string()).expect("a manifest");
        fs::write(own.join("analyse.sh"), "cat > \"$ERRAND_RESULTS/insights.json\"")
            .expect("a program");
        let mut options = Options::default();
        let directory = actions.path().display().to_string();
        options.env.push(("ERRAND__ACTIONS__DIRECTORY".to_owned(), directory));
        Self { platform: Platform::with(options).await, _actions: actions }
    }

    /// Registers the agent with the files beside its agent.yaml.
    fn register(&self, name: &str, agent: &str) -> Value {
        let dir = self.platform.scratch().join(name);
        fs::create_dir_all(dir.join("skills")).expect("directories");
        fs::write(dir.join("agent.yaml"), agent).expect("a file");
        fs::write(dir.join("agent.sh"), SCRIPT).expect("a file");
        fs::write(dir.join("skills/style.md"), "in plain words").expect("a file");
        let file = dir.join("agent.yaml");
        let file = file.to_str().expect("a path");
        ask(&self.platform, &["agents", "register", "--name", name, "--agent-config", file])
    }
}

/// Downloads a result that is JSON.
fn result(platform: &Platform, job: &str, name: &str) -> Value {
    let file = platform.scratch().join(format!("{job}-{name}"));
    let to = file.to_str().expect("a path");
    let download = run(platform, &["jobs", "results", "download", name, "--job", job, "-o", to]);
    assert!(download.status.success(), "{download:?}");
    read(&file)
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).expect("the file is there")).expect("it is JSON")
}

#[tokio::test]
async fn an_agent_says_what_its_jobs_are_asked_and_what_follows_them() {
    let installed = Installed::start().await;
    let platform = &installed.platform;
    let agent = installed.register("researcher", AGENT);
    assert_eq!(agent["default_input"], "What is new?");
    assert_eq!(agent["post_run_actions"], json!(["insights.analysis"]));
    assert_eq!(agent["context_schema"]["required"], json!(["since"]));
    assert!(agent["config"].get("helix_registration").is_none(), "{agent}");
    let own = ask(platform, &["files", "list", "researcher-ethos"]);
    let mut own = each(&own, "path");
    own.sort();
    assert_eq!(own, ["agent.sh", "agent.yaml", "skills/style.md"]);

    // Neither an input nor an action is named.
    let context = r#"{"context": {"since": "2026-10-01T00:00:00Z"}}"#;
    let execute = ["agents", "execute", "--agent", "researcher", "--spec", context];
    let record = ask(platform, &[&execute[..], &["--name", "first", "--wait"]].concat());
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(record["spec"]["post_run_action"]["kind"], "insights.analysis", "{record}");
    let answer = result(platform, "first", "fabric_run_result");
    let said = "What is new?since\":\"2026-10-01T00:00:00Z\nin plain words";
    assert_eq!(answer["response"], said);
    let told = result(platform, "first", "insights.json");
    assert_eq!(
        (&told["agent"], &told["fabric_run_result"]),
        (&json!("default/researcher"), &answer)
    );
}

#[tokio::test]
async fn a_context_that_does_not_fit_names_the_key() {
    let installed = Installed::start().await;
    let platform = &installed.platform;
    installed.register("researcher", AGENT);
    let spec = |context: Value| json!({"agent": "researcher", "context": context}).to_string();
    for (context, words) in [
        (
            json!({"sinse": "2026-10-01T00:00:00Z"}),
            &[
                "context.sinse: unknown key, did you mean `since`",
                "context.since: required key is missing",
            ][..],
        ),
        (json!({"since": "yesterday"}), &["context.since: the value is not a \"date-time\""]),
        (json!({"since": "2026-10-01"}), &["context.since: the value is not a \"date-time\""]),
    ] {
        let said = fails(platform, &["agents", "execute", "--spec", &spec(context)], 3);
        for words in words {
            assert!(said.contains(words), "{said}");
        }
    }
    let jobs = ask(platform, &["jobs", "list"]);
    assert_eq!(jobs["pagination"]["total_results"], 0, "{jobs}");
}

#[tokio::test]
async fn of_several_actions_a_job_names_one() {
    let installed = Installed::start().await;
    let platform = &installed.platform;
    let several = AGENT.replace("[insights.analysis]", "[insights.analysis, agents.noop]");
    installed.register("researcher", &several);
    let context = r#"{"context": {"since": "2026-10-01T00:00:00Z"}}"#;
    let execute = ["agents", "execute", "--agent", "researcher", "--spec", context];
    let said = fails(platform, &execute, 3);
    let words = "The agent declares several post-run actions (insights.analysis, agents.noop); \
                 post_run_action must name one.";
    assert!(said.contains(words), "{said}");
    let said =
        fails(platform, &[&execute[..], &["--post-run-action.kind", "agents.publish"]].concat(), 3);
    assert!(
        said.contains("'agents.publish' is not one of those that the agent declares"),
        "{said}"
    );
    let named = ["--post-run-action.kind", "agents.noop", "--wait"];
    let record = ask(platform, &[&execute[..], &named].concat());
    assert_eq!(record["status"], "completed", "{record}");
}

#[tokio::test]
async fn flags_win_over_a_spec_file_and_the_whole_record_is_printed() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let spec = "agent: greeter\ninput: file\ntimeout_seconds: 10\nauto_telemetry: false\n";
    fs::write(platform.scratch().join("spec.yaml"), spec).expect("a file");
    fs::write(platform.scratch().join("prompt.txt"), "prompt").expect("a file");
    let execute = ["agents", "execute", "--spec-file", "spec.yaml"];
    let more = ["--spec", r#"{"timeout_seconds": 20}"#, "--input", "flag", "--name", "run-1"];
    let record = ask(&platform, &[&execute[..], &more, &["--description", "d"]].concat());
    assert_eq!((&record["name"], &record["description"]), (&json!("run-1"), &json!("d")));
    assert!(record["id"].as_str().is_some_and(|id| id.starts_with("platform-job-")), "{record}");
    assert_eq!(record["spec"]["agent_ref"], "default/greeter", "{record}");
    let request = &record["spec"]["request"];
    assert_eq!((&request["input"], &request["timeout_seconds"]), (&json!("flag"), &json!(20.0)));
    assert_eq!(request["auto_telemetry"], false, "{request}");
    let record = ask(&platform, &[&execute[..], &["--input-file", "prompt.txt"]].concat());
    assert_eq!(record["spec"]["request"]["input"], "prompt", "{record}");
}

#[tokio::test]
async fn an_agents_runs_are_listed_across_workspaces() {
    let platform = Platform::start().await;
    ask(&platform, &["workspaces", "create", "research"]);
    for (workspace, agent) in [("default", "calc"), ("research", "calc"), ("default", "other")] {
        register_greeter(&platform, workspace, agent);
    }
    let execute = |workspace: &str, agent: &str, name: &str| {
        let args = ["agents", "execute", "-w", workspace, "--agent", agent, "--name", name];
        ask(&platform, &[&args[..], &["--input", "x"]].concat());
    };
    execute("default", "calc", "one");
    execute("default", "research/calc", "two");
    execute("default", "other", "three");
    execute("research", "calc", "four");
    let filter = r#"{"spec.agent_ref": {"$in": ["default/calc", "research/calc"]}}"#;
    let source = ["--filter.source", "nemo-agents-plugin-execute", "--filter", filter];
    let names = |workspace: &str| {
        let list = ["jobs", "list", "-w", workspace, "--sort", "created_at"];
        each(&ask(&platform, &[&list[..], &source].concat()), "name")
    };
    assert_eq!(names("default"), ["one", "two"]);
    assert_eq!(names("research"), ["four"]);
    assert_eq!(names("-"), ["one", "two", "four"]);
}

#[tokio::test]
async fn a_jobs_output_is_the_base_of_the_next_one() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let first = ask(
        &platform,
        &["agents", "execute", "--agent", "greeter", "--input", "one", "--name", "first", "--wait"],
    );
    let attempt = first["attempt_id"].as_str().expect("the record names its attempt");
    let base = format!("job-fileset-first#results/{attempt}/output_workdir");
    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", "cat said.txt data/extra.txt"]);

    // An inline agent, and an artifact laid over the base, in a file; the base by a flag.
    fs::write(platform.scratch().join("extra.txt"), "and more").expect("a file");
    ask(&platform, &["files", "upload", "extra.txt", "extras"]);
    let mounts = json!([{"ref": "extras#extra.txt", "mount_path": "data/extra.txt"}]);
    let spec = json!({"workdir": {"artifact_mounts": mounts}}).to_string();
    fs::write(platform.scratch().join("mounts.json"), spec).expect("a file");
    let inline = json!({"agent": agent, "input": ""}).to_string();
    let execute = ["agents", "execute", "--spec-file", "mounts.json", "--spec", &inline];
    let more = ["--workdir.base-workdir", &base, "--name", "second", "--wait"];
    let second = ask(&platform, &[&execute[..], &more].concat());
    assert_eq!(second["status"], "completed", "{second}");
    let answer = result(&platform, "second", "fabric_run_result");
    assert_eq!(answer["response"], "hello one\nand more");
}
