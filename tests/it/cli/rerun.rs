//! `jobs rerun`: the same once more, the newest of it, and on from where it ended.

use std::time::Duration;

use serde_json::json;

use super::{fails, json as printed, run};
use crate::batch::register;
use crate::harness::{Job, Platform};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn case_u1_jobs_are_run_once_more_anew_and_from_their_output() {
    let platform = Platform::start().await;
    let api = platform.api();
    let rerun = async |args: &[&str]| {
        let made = printed(&platform, &[&["jobs", "rerun"], args].concat());
        let job = Job::new(platform.api(), &made);
        assert_eq!(job.ends(SOON).await["status"], "completed", "{made}");
        job
    };
    register(&platform, "writer", "read word; echo first $word >> said; cat said").await;
    let execute = ["agents", "execute", "--agent", "writer", "--input", "one\n", "--name", "start"];
    let first = Job::new(api.clone(), &printed(&platform, &execute));
    assert_eq!(first.ends(SOON).await["status"], "completed");
    assert!(run(&platform, &["agents", "delete", "writer"]).status.success());
    register(&platform, "writer", "read word; echo second $word >> said; cat said").await;

    let said = async |job: &Job| {
        let directory = job.directory("output_workdir").await;
        let path = directory.path().join("said");
        std::fs::read_to_string(path).expect("it is there").replace('\n', ";")
    };
    let same = rerun(&["start"]).await;
    assert_eq!(said(&same).await, "first one;");
    let latest = rerun(&["start", "--latest", "--input", "two\n"]).await;
    assert_eq!(said(&latest).await, "second two;");
    let fork = rerun(&["start", "--base", "output_workdir", "--input", "three\n"]).await;
    assert_eq!(said(&fork).await, "first one;first three;");
    let both = rerun(&[&fork.name, "--workdir-from", "output", "--latest"]).await;
    assert_eq!(said(&both).await, "first one;first three;second three;");

    let shown = printed(&platform, &["jobs", "get", "start"]);
    assert_eq!(shown["reruns"], json!([same.name, latest.name, fork.name]), "{shown}");
    let shown = printed(&platform, &["jobs", "get", &both.name]);
    assert_eq!(shown["rerun_of_name"], fork.name, "{shown}");
    let failed = api.script("sleep 600", json!({"timeout_seconds": 1})).await;
    failed.ends(SOON).await;
    let refused = fails(&platform, &["jobs", "rerun", &failed.name, "--base", "output_workdir"], 3);
    assert!(refused.contains("its output_workdir is incomplete."), "{refused}");
    fails(&platform, &["jobs", "rerun", "start", "--latest", "--snapshot"], 2);
    fails(&platform, &["jobs", "rerun", "start", "--base", "input_workdir"], 2);
}
