//! Environments and their specs: stored, found by a job, deleted.

use serde_json::json;

use super::{each, fails, json as ask, run, text};
use crate::harness::{Platform, script_agent};

#[tokio::test]
async fn an_environment_is_stored_from_files_and_reaches_the_agent() {
    let platform = Platform::start().await;
    let write = |name: &str, text: &str| {
        std::fs::write(platform.scratch().join(name), text).expect("a file");
    };
    write("spec.yaml", "description: loud\nenv:\n  VOLUME: eleven\n");
    write("environment.json", r#"{"name": "stage", "environment_spec": "loud"}"#);
    write("small.yaml", "name: small\nresources: {limits: {cpu: '2'}}\n");

    let said = fails(&platform, &["environment-specs", "create", "--file", "spec.yaml"], 2);
    assert!(said.contains("the environment spec has no name: give --name"), "{said}");
    let create = ["environment-specs", "create", "--file", "spec.yaml", "--name", "loud"];
    let made = ask(&platform, &create);
    assert_eq!((&made["name"], &made["env"]["VOLUME"]), (&json!("loud"), &json!("eleven")));
    let said = fails(&platform, &create, 3);
    assert!(
        said.contains("Conflict: (409) Agent environment spec 'loud' already exists"),
        "{said}"
    );
    ask(&platform, &["environments", "create", "--file", "environment.json"]);
    ask(&platform, &["compute-specs", "create", "--file", "small.yaml", "--name", "smaller"]);

    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", "echo $VOLUME"]);
    let spec = json!({"agent": agent, "input": ""}).to_string();
    let execute = ["agents", "execute", "--spec", &spec, "--environment", "stage", "--wait"];
    let job = ask(&platform, &execute);
    let name = job["name"].as_str().expect("the job has a name");
    let download = ["jobs", "results", "download", "fabric_run_result", "--job", name, "-o", "out"];
    assert!(run(&platform, &download).status.success());
    let saved = std::fs::read(platform.scratch().join("out")).expect("the file is there");
    let saved: serde_json::Value = serde_json::from_slice(&saved).expect("it is JSON");
    assert_eq!(saved["response"], "eleven", "{saved}");

    for (collection, noun, name) in [
        ("environments", "environment", "stage"),
        ("environment-specs", "environment spec", "loud"),
        ("compute-specs", "compute spec", "smaller"),
    ] {
        assert_eq!(each(&ask(&platform, &[collection, "list"]), "name"), [name]);
        assert_eq!(ask(&platform, &[collection, "get", name])["name"], name);
        let deleted = run(&platform, &[collection, "delete", name]);
        assert!(deleted.status.success(), "{deleted:?}");
        assert_eq!(text(deleted.stderr), format!("{noun} '{name}' is deleted\n"));
        fails(&platform, &[collection, "get", name], 4);
    }
}
