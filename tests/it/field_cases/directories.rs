//! FC-F: odd working directories.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Platform, script_agent};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn case_f1_broken_links_do_not_break_the_job() {
    let platform = Platform::start().await;
    let script = "ln -s nowhere broken; ln -s loop loop; echo ok > real.txt";
    let job = platform.api().script(script, json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    let workdir = job.directory("output_workdir").await;
    let link = |name: &str| fs::read_link(workdir.path().join(name)).expect("a link");
    assert_eq!(link("broken").as_os_str(), "nowhere");
    assert_eq!(link("loop").as_os_str(), "loop");
    assert_eq!(fs::read_to_string(workdir.path().join("real.txt")).expect("kept"), "ok\n");
}

#[tokio::test]
async fn case_f10_a_jobs_output_is_the_next_ones_input_to_the_bit() {
    let platform = Platform::start().await;
    let api = platform.api();
    let make = r"
        mkdir -p empty/deeper .git sub; echo ref > .git/HEAD; ln -s ../nowhere sub/link
        echo x > sub/x; ln sub/x sub/hard; chmod 600 sub/x; chmod 1777 empty; chmod 755 agent.sh
        touch -d '2001-02-03 04:05:06' sub/x sub
        find . -printf '%y %m %p %l %Ts\n' | sort";
    let first = api.script(make, json!({})).await;
    assert_eq!(first.ends(SOON).await["status"], "completed");
    let wanted = first.json("fabric_run_result").await["response"].clone();

    // The second one's script comes from beside its working directory.
    let result = first.result("output_workdir").await;
    let reference = result["artifact_url"].as_str().expect("an artifact url");
    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", "find . -printf '%y %m %p %l %Ts\\n' | sort"]);
    let workdir = json!({"base_workdir": reference});
    let second = api.submit(json!({"agent": agent, "input": "", "workdir": workdir})).await;
    assert_eq!(second.ends(SOON).await["status"], "completed");
    let found = second.json("fabric_run_result").await["response"].clone();
    assert!(wanted.as_str().is_some_and(|listing| listing.lines().count() > 8), "{wanted}");
    assert_eq!(found, wanted);
}

/// An agent that puts a link in place of its directory must not make the platform read what the
/// link leads to.
#[tokio::test]
async fn a_link_in_place_of_the_working_directory_is_not_followed() {
    let platform = Platform::start().await;
    let secret = platform.scratch();
    fs::write(secret.join("secret.txt"), "the platform's own").expect("write");
    let script =
        format!("cd ..; rm -rf workspace; ln -s {} workspace; echo done", secret.display());
    let job = platform.api().script(&script, json!({})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "save_failed", "{record}");
    let names = ["fabric_run_result", "input_workdir", "output_artifacts"];
    assert_eq!(job.result_names().await, names);
}
