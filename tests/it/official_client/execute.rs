//! `nemo agents execute`: what its flags and files become, and what is refused.

use serde_json::{Value, json};

use super::nemo::Nemo;
use crate::harness::{Platform, script_agent};

#[tokio::test]
async fn flags_and_files_reach_the_spec() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.agent("calc", script_agent()["config"].clone()).await;
    api.fileset("work", &[("agent.sh", "cat; cat notes.txt 2>/dev/null; true")]).await;
    api.fileset("notes", &[("notes.txt", "seven")]).await;
    let mut nemo = Nemo::start(&platform, "agents execute explain");

    let job = nemo.json(
        "agents execute --agent calc --input '12 times 8' --workdir.base-workdir work \
         --timeout-seconds 30.5 --extension.kind noop --profile default \
         --spec '{\"auto_telemetry\": false}'",
    );
    let request = &job["spec"]["request"];
    assert_eq!(request["agent"], "calc");
    assert_eq!(request["input"], "12 times 8");
    assert_eq!(request["timeout_seconds"], 30.5);
    assert_eq!(request["auto_telemetry"], false);
    assert_eq!(job["spec"]["workdir"]["base_workdir"], "default/work#");
    assert_eq!(job["spec"]["agent_ref"], "default/calc");

    // Flags lie over a file, or over --spec.
    nemo.write("spec.yaml", "agent: nobody\ninput: from the file\ntimeout_seconds: 7\n");
    let job = nemo.json("agents execute --spec-file spec.yaml --agent default/calc");
    let request = &job["spec"]["request"];
    assert_eq!(
        (&request["agent"], &request["input"]),
        (&json!("default/calc"), &json!("from the file"))
    );
    assert_eq!(request["timeout_seconds"], 7.0);
    let mounts = json!([{"ref": "notes#notes.txt", "mount_path": "notes.txt"}]);
    let spec = json!({"agent": "calc", "input": "", "workdir": {"artifact_mounts": mounts}});
    let job = nemo.json(&format!("agents execute --spec '{spec}' --input 'from the flag'"));
    assert_eq!(job["spec"]["request"]["input"], "from the flag");
    let mount = &job["spec"]["workdir"]["artifact_mounts"][0];
    assert_eq!(mount["ref"], "default/notes#notes.txt", "{job}");

    // The client of 0.8.1 has no words for these, and passes them on.
    let inline = json!({"agent": script_agent(), "input": "", "context": {"ticket": 4711},
        "post_run_action": {"kind": "agents.noop"}});
    nemo.write("inline.json", inline.to_string());
    nemo.write("options.yaml", "docker: {network: none}\n");
    let job = nemo.json(
        "agents execute --spec-file inline.json --options-file options.yaml -o docker.pull=always",
    );
    assert_eq!(job["spec"]["context"], json!({"ticket": 4711}), "{job}");
    assert_eq!(job["spec"]["post_run_action"]["kind"], "agents.noop");
    assert_eq!(job["spec"].get("agent_ref").unwrap_or(&Value::Null), &Value::Null);
}

#[tokio::test]
async fn what_is_refused_says_why_and_exits_2() {
    let platform = Platform::start().await;
    platform.api().agent("calc", script_agent()["config"].clone()).await;
    let mut nemo = Nemo::start(&platform, "agents execute explain");
    let schemas = nemo.json("agents execute explain");
    assert!(schemas.is_object(), "{schemas}");
    let of = "Failed to transform nemo-agents-plugin-execute job input to output: ";
    for (arguments, text) in [
        ("--agent nobody --input x", format!("{of}Agent 'nobody' not found.")),
        ("--agent 'no ref' --input x", "must be an entity name or a 'workspace/name' ref".into()),
        ("--agent calc --input x --timeout-seconds 0", "Input should be greater than 0".into()),
        (
            "--agent calc --input x --workdir.base-workdir nothing",
            "Fileset 'nothing' not found in workspace 'default'".into(),
        ),
        (
            "--agent calc --input x --extension.kind nothing",
            format!("{of}Unknown agents.execute extension 'nothing'."),
        ),
        (
            "--agent calc --input x --profile nothing",
            "The execution profile 'cpu/nothing' specified in step 'execute-agent' does not exist."
                .into(),
        ),
        (
            "--agent calc --input x -w nowhere",
            "Workspace 'nowhere' does not exist. Please create the workspace first.".into(),
        ),
        ("--agent calc", "input".into()),
    ] {
        nemo.fails(&format!("agents execute {arguments}"), 2, &text);
    }
    nemo.fails("agents execute --spec '{'", 1, "invalid spec");
    nemo.fails("agents execute", 1, "");
    assert_eq!(nemo.json("jobs list")["pagination"]["total_results"], 0);
}
