//! The client with a token, at a platform where callers need one.

use std::time::Duration;

use serde_json::json;

use super::nemo::{Nemo, names};
use crate::harness::{Job, Options, Platform, script_agent};

const SOON: Duration = Duration::from_secs(60);

fn token(platform: &Platform, name: &str, role: &str) -> String {
    let create = ["tokens", "create", "-w", "default", "--role", role, "--name", name];
    let made = platform.beside(&create).output().expect("errand runs");
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).expect("it is text").trim().to_owned()
}

#[tokio::test]
async fn commands_work_with_a_token_and_say_what_it_lacks() {
    let platform = Platform::with(Options::default().set("auth.required", true)).await;
    let submitter = token(&platform, "ci", "submitter");
    let mut nemo = Nemo::with_token(&platform, "jobs list --help", &submitter);
    nemo.json("files filesets create work");
    let own = platform.api().with_token(&submitter);
    own.upload("work", "agent.sh", "echo done").await;
    let workdir = json!({"base_workdir": "work"});
    let spec = json!({"agent": script_agent(), "input": "", "workdir": workdir});
    let job = nemo.json(&format!("agents execute --spec '{spec}'"));
    let name = job["name"].as_str().expect("a name").to_owned();
    assert_eq!(job["ownership"]["principal_id"], "ci", "{job}");
    assert_eq!(Job::new(own, &job).ends(SOON).await["status"], "completed");
    assert_eq!(names(&nemo.json("jobs list")), [&*name]);
    assert_eq!(names(&nemo.json("files filesets list")), ["work"]);
    let lacking = "Permission denied: (403) Role 'admin' in workspace 'default' is needed";
    nemo.fails("secrets create key --value hush-hush", 3, lacking);

    let mut nobody = Nemo::start(&platform, "jobs list --help");
    nobody.fails("jobs list", 3, "Authentication error: (401) A valid token is needed");
}
