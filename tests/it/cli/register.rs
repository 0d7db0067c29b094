//! `agents register`: an agent and the files beside its agent.yaml, replaced and taken back whole.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::{GREETER, each, fails, json as ask};
use crate::harness::Platform;

/// Writes a directory of these files beside the greeter's agent.yaml, and gives the latter's path.
fn agent(platform: &Platform, config: &str, files: &[&str]) -> String {
    let dir: PathBuf = platform.scratch().join("greeter");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).expect("a directory");
    for file in files {
        fs::write(dir.join(file), *file).expect("a file");
    }
    let file = dir.join("agent.yaml");
    fs::write(&file, config).expect("a file");
    file.to_str().expect("a path").to_owned()
}

fn own_files(platform: &Platform) -> Vec<String> {
    let mut paths = each(&ask(platform, &["files", "list", "greeter-ethos"]), "path");
    paths.sort();
    paths
}

fn description(platform: &Platform) -> String {
    let agent = ask(platform, &["agents", "get", "greeter"]);
    agent["description"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn an_agent_is_replaced_with_its_files_and_only_on_request() {
    let platform = Platform::start().await;
    let register = ["agents", "register", "--name", "greeter", "--agent-config"];
    let file = agent(&platform, GREETER, &["old.md", "both.md"]);
    ask(&platform, &[&register[..], &[&file, "--description", "first"]].concat());
    assert_eq!(own_files(&platform), ["agent.yaml", "both.md", "old.md"]);
    let ethos = platform.scratch().join("ETHOS.md");
    fs::write(&ethos, "written by hand").expect("a file");
    ask(&platform, &["files", "upload", ethos.to_str().expect("a path"), "greeter-ethos"]);

    let file = agent(&platform, GREETER, &["new.md", "both.md", "AGENT-SPEC.md"]);
    let again = [&register[..], &[&file, "--description", "second"]].concat();
    let said = fails(&platform, &again, 3);
    assert!(said.contains("Conflict: (409) Agent 'greeter' already exists"), "{said}");
    assert_eq!(description(&platform), "first");
    ask(&platform, &[&again[..], &["--force"]].concat());
    assert_eq!(description(&platform), "second");
    assert_eq!(own_files(&platform), ["ETHOS.md", "agent.yaml", "both.md", "new.md"]);

    // What is refused leaves everything as it was, what was registered beside the config included.
    let declaring = format!("{GREETER}helix_registration: {{default_input: you}}\n");
    let file = agent(&platform, &declaring, &[]);
    ask(&platform, &[&register[..], &[&file, "--description", "third", "--force"]].concat());
    let file = agent(&platform, &GREETER.replace("default_harness: script", ""), &["newer.md"]);
    let said = fails(&platform, &[&register[..], &[&file, "--force"]].concat(), 3);
    assert!(said.contains("default_harness"), "{said}");
    assert_eq!(description(&platform), "third");
    assert_eq!(ask(&platform, &["agents", "get", "greeter"])["default_input"], json!("you"));
    assert_eq!(own_files(&platform), ["ETHOS.md", "agent.yaml"]);
}

/// The name of its fileset is longer than the agent's, and too long here.
#[tokio::test]
async fn an_agent_whose_files_cannot_be_stored_is_not_registered() {
    let platform = Platform::start().await;
    let file = agent(&platform, GREETER, &[]);
    let name = "g".repeat(60);
    let said = fails(&platform, &["agents", "register", "--name", &name, "-c", &file], 3);
    assert!(said.contains(&format!("the files of agent '{name}' could not be stored")), "{said}");
    fails(&platform, &["agents", "get", &name], 4);
}
