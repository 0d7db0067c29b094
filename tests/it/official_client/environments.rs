//! `nemo agents environments | environment-specs | compute-specs`, and running under one.

use serde_json::json;

use super::nemo::{Nemo, names};
use crate::harness::{Platform, script_agent};

const KINDS: [(&str, &str); 3] = [
    ("environments", "environment"),
    ("environment-specs", "environment spec"),
    ("compute-specs", "compute spec"),
];

#[tokio::test]
async fn each_kind_is_created_listed_shown_and_deleted() {
    let platform = Platform::start().await;
    let mut nemo = Nemo::start(&platform, "agents list --help");
    nemo.write("compute.yaml", "resources:\n  limits: {cpu: '2', memory: 4Gi}\n");
    nemo.write("environment.json", r#"{"env": {"LOG_LEVEL": "debug"}}"#);

    let compute = nemo.json("agents compute-specs create small --spec-file compute.yaml");
    assert_eq!(
        compute["resources"],
        json!({"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {}})
    );
    let spec = nemo.json("agents environment-specs create verbose -f environment.json");
    assert_eq!(spec["env"], json!({"LOG_LEVEL": "debug"}));
    let command = "agents environments create research --environment-spec default/verbose \
                   --compute-spec small";
    let environment = nemo.json(command);
    assert_eq!(environment["environment_spec"], "default/verbose", "{environment}");
    assert_eq!(environment["compute_spec"], "small", "{environment}");
    let inline = nemo.json(
        r#"agents environments create inline --spec '{"environment_spec": {"env": {"A": "b"}}}'"#,
    );
    assert_eq!(inline["environment_spec"]["env"], json!({"A": "b"}), "{inline}");
    assert_eq!(inline["environment_spec"]["mcp"], json!({}), "its defaults are filled in");

    assert_eq!(names(&nemo.list("agents environments list")), ["inline", "research"]);
    assert_eq!(names(&nemo.json("agents environment-specs list")), ["verbose"]);
    assert_eq!(names(&nemo.json("agents compute-specs list")), ["small"]);
    for ((kind, word), name) in KINDS.into_iter().zip(["research", "verbose", "small"]) {
        assert_eq!(nemo.json(&format!("agents {kind} get {name}"))["name"], name);
        let taken = format!("Agent {word} '{name}' already exists in workspace 'default'.");
        nemo.fails(&format!("agents {kind} create {name} --spec '{{}}'"), 1, &taken);
        nemo.ok(&format!("agents {kind} delete {name} --yes"));
        let gone = format!("Agent {word} '{name}' not found in workspace 'default'.");
        nemo.fails(&format!("agents {kind} get {name}"), 1, &gone);
        nemo.fails(&format!("agents {kind} delete {name} --yes"), 1, &gone);
    }
}

#[tokio::test]
async fn a_job_runs_under_a_stored_environment() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.agent("greeter", script_agent()["config"].clone()).await;
    api.fileset("work", &[("agent.sh", "echo $GREETING")]).await;
    let mut nemo = Nemo::start(&platform, "agents execute explain");
    nemo.ok(r#"agents environment-specs create polite --spec '{"env": {"GREETING": "good day"}}'"#);
    nemo.ok("agents environments create office --environment-spec polite");
    let job = nemo.json(
        "agents execute --agent greeter --input '' --environment office --workdir.base-workdir work",
    );
    let name = job["name"].as_str().expect("a name");
    nemo.ok(&format!("jobs watch {name} --poll-interval 1"));
    nemo.ok(&format!("jobs results download fabric_run_result --job {name} -o result.json"));
    let result = std::fs::read_to_string(nemo.home().join("result.json")).expect("downloaded");
    let result: serde_json::Value = serde_json::from_str(&result).expect("it is JSON");
    assert_eq!(result["response"], "good day");

    let command = "agents execute --agent greeter --input '' --environment nowhere";
    nemo.fails(command, 2, "AgentEnvironment 'nowhere' not found in workspace 'default'.");
}
