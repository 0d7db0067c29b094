//! `nemo config`: its contexts, which commands and the SDK go by.

use serde_json::json;

use super::nemo::{Nemo, names, one_line, unconfigured};
use crate::harness::{Platform, script_agent};

/// Prints the names of the execute jobs of the current context.
const LIST: &str = "
from nemo_helix_plugin.agents.client import AgentsClient
client = AgentsClient.from_config()
print(client.workspace, *[job.name for job in client.list_agent_jobs(collection='execute').items()])
";

#[tokio::test]
async fn commands_and_the_sdk_use_the_current_context() {
    let platform = Platform::start().await;
    let http = platform.run["http"].as_str().expect("run.json names the address");
    let mut nemo = Nemo::unconfigured(&platform, "jobs list --help");

    let said = nemo.run(&format!("config set --base-url {http} --workspace default"));
    assert_eq!(said.code, 0, "{said:?}");
    nemo.ok("workspaces create research");
    let set =
        format!("config set --context team --base-url {http} --workspace research --activate");
    assert_eq!(nemo.run(&set).code, 0);
    assert_eq!(nemo.ok("config current-context").trim(), "team");
    let spec = json!({"agent": script_agent(), "input": ""});
    let job = nemo.json(&format!("agents execute --spec '{spec}'"));
    assert_eq!(job["workspace"], "research", "{job}");
    let name = job["name"].as_str().expect("a name");
    assert_eq!(names(&nemo.json("jobs list")), [name]);
    let listed = unconfigured(&platform, nemo.home()).args(["-c", LIST]).output();
    let listed = listed.expect("python runs");
    let said = String::from_utf8_lossy(&listed.stdout);
    assert_eq!(one_line(&said), format!("research {name}"), "{listed:?}");

    assert_eq!(nemo.run("config use-context default").code, 0);
    assert!(names(&nemo.json("jobs list")).is_empty());
    assert_eq!(nemo.json("config view -f json")["current_context"], "default");
    assert_eq!(names(&nemo.json("--context team jobs list")), [name]);
}
