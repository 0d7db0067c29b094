//! `nemo agents list | get | delete`.

use super::nemo::{Nemo, names, program};
use crate::harness::{Platform, script_agent};

#[tokio::test]
async fn the_program_that_runs_is_the_pinned_one() {
    let version = std::process::Command::new(program()).arg("--version").output();
    let version = version.expect("./dev test installs the client");
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), "nemo version 0.8.1");
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
