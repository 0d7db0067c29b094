//! `nemo agents create | list | get | delete`.

use super::nemo::{Nemo, items, names, program};
use crate::harness::{Platform, script_agent};

#[tokio::test]
async fn the_program_that_runs_is_the_pinned_one() {
    let version = std::process::Command::new(program()).arg("--version").output();
    let version = version.expect("./dev test installs the client");
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), "nemo version 0.8.1");
}

/// The client plans the agent before it sends anything, with the one adapter that it brings along.
#[tokio::test]
async fn an_agent_is_created_with_the_files_beside_its_config() {
    let platform = Platform::start().await;
    let mut nemo = Nemo::start(&platform, "agents list --help");
    nemo.write(
        "agent/agent.yaml",
        "config_format: nemo-agents-spec-v1\nname: analyst\ndefault_harness: insights\n\
         harnesses:\n  insights:\n    kind: nvidia.fabric.insights-analyst\n    \
         settings: {agent: calc}\nmodels: {default: {provider: openai, model: m}}\n",
    );
    nemo.write("agent/skills/sums/SKILL.md", "---\nname: sums\ndescription: adds\n---\nadd\n");
    let create = "agents create --name analyst --agent-config agent/agent.yaml --description sums";
    let made = nemo.json(create);
    assert_eq!((&made["name"], &made["description"]), (&"analyst".into(), &"sums".into()));
    let own = nemo.json("files list analyst-ethos");
    let mut own: Vec<_> =
        items(&own).iter().map(|file| file["path"].as_str().expect("a path")).collect();
    own.sort_unstable();
    assert_eq!(own, ["agent.yaml", "skills/sums/SKILL.md"]);
    nemo.fails(create, 1, "Agent 'analyst' already exists in workspace 'default'.");
}

#[tokio::test]
async fn agents_are_listed_shown_and_deleted() {
    let platform = Platform::start().await;
    for name in ["calc", "reader"] {
        platform.api().agent(name, script_agent()["config"].clone()).await;
    }
    let mut nemo = Nemo::start(&platform, "agents list --help");

    assert_eq!(names(&nemo.list("agents list")), ["reader", "calc"]);
    let agent = nemo.json("agents get calc");
    assert_eq!(agent["config"]["default_harness"], "script", "{agent}");
    let absent = "GET agent API failed: Agent 'nobody' not found in workspace 'default'. \
                  (HTTP 404 Not Found)";
    nemo.fails("agents get nobody", 1, absent);

    assert_eq!(nemo.ok("agents delete calc --yes").trim(), "Agent 'calc' deleted.");
    nemo.fails("agents delete calc --yes", 1, "Agent 'calc' not found in workspace 'default'.");
    assert_eq!(names(&nemo.json("agents list --workspace default")), ["reader"]);
    nemo.fails("agents list -w nowhere", 1, "Workspace 'nowhere' not found");
    nemo.fails("agents register x", 2, "No such command 'register'.");
}
