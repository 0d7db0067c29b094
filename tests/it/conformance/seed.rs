//! H 2 and 7–10: cases of the 0.10 documentation that need a running job.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{SOON, files, shell, spec};
use crate::harness::{Options, Platform, eventually, running_with_argument};

const AGENTS: &str = "/apis/agents/v2/workspaces/default";

#[tokio::test]
async fn h2_an_agent_receives_the_users_keys_and_the_platforms() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.agent("sums", shell("cat $ERRAND_CONTEXT")["config"].clone()).await;
    let context = json!({"ticket": 4711, "deep": {"list": [1, null]}});
    for (agent, known_as) in
        [(json!("sums"), "default/sums"), (shell("cat $ERRAND_CONTEXT"), "default/calc")]
    {
        let job = api.submit(json!({"agent": agent, "input": "", "context": context})).await;
        assert_eq!(job.ends(SOON).await["status"], "completed");
        let response = job.json("fabric_run_result").await["response"].take();
        let mut received: Value =
            serde_json::from_str(response.as_str().expect("text")).expect("it is JSON");
        let mut own = received["nemo_helix"].take();
        let deadline = own["deadline"].take();
        let deadline = deadline.as_str().expect("a time").parse::<jiff::Timestamp>();
        assert!(deadline.expect("it is RFC 3339") > jiff::Timestamp::now());
        let expected = json!({
            "job_id": job.name, "job_workspace": "default", "agent": known_as, "deadline": null,
        });
        assert_eq!(own, expected);
        let mut sent = context.clone();
        sent["nemo_helix"] = Value::Null;
        assert_eq!(received, sent);
    }
}

#[tokio::test]
async fn h7_a_failed_post_run_action_keeps_the_results() {
    let platform = Platform::start().await;
    let mut spec = spec("echo kept > kept.txt; echo 96");
    let config = json!({"fileset": "exported", "paths": ["nothing.txt"]});
    spec["post_run_action"] = json!({"kind": "agents.export-files", "config": config});
    let job = platform.api().submit(spec).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    let names = job.result_names().await;
    for name in ["fabric_run_result", "output_workdir", "output_artifacts"] {
        assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
    }
    let kept = files(job.directory("output_workdir").await.path());
    assert_eq!(kept, [("kept.txt".to_owned(), "kept\n".to_owned())]);
}

/// A platform with one slot, taken, so that what is submitted waits.
async fn busy() -> (Platform, crate::harness::Job) {
    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    let first = platform.api().submit(spec("sleep 600")).await;
    first.reaches("active", SOON).await;
    (platform, first)
}

async fn remove(platform: &Platform, path: &str) {
    let path = format!("{AGENTS}/{path}");
    let (status, body) = platform.api().ask(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{path}: {body}");
}

#[tokio::test]
async fn h8_a_run_does_not_change_with_its_agent() {
    let (platform, first) = busy().await;
    let api = platform.api();
    api.agent("calc", shell("echo old; cat ../style.md")["config"].clone()).await;
    api.fileset("calc-ethos", &[("style.md", "plain")]).await;
    let job = api.submit(json!({"agent": "calc", "input": ""})).await;
    remove(&platform, "agents/calc").await;
    let ethos = "/apis/files/v2/workspaces/default/filesets/calc-ethos";
    let (status, body) = api.ask(Method::DELETE, ethos, None).await;
    assert!(status.is_success(), "{body}");
    api.agent("calc", shell("echo new; cat ../style.md")["config"].clone()).await;
    api.fileset("calc-ethos", &[("style.md", "florid")]).await;
    first.cancel().await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    assert_eq!(job.json("fabric_run_result").await["response"], "old\nplain");
}

#[tokio::test]
async fn h8_a_run_does_not_change_with_its_environment() {
    let (platform, first) = busy().await;
    let api = platform.api();
    let make = |kind: &str, body: Value| {
        let path = format!("{AGENTS}/{kind}");
        let api = api.clone();
        async move {
            let (status, body) = api.ask(Method::POST, &path, Some(body)).await;
            assert_eq!(status, StatusCode::CREATED, "{path}: {body}");
        }
    };
    let spec_of = |word: &str| json!({"name": "spec", "env": {"WORD": word}});
    make("environment-specs", spec_of("old")).await;
    make("environments", json!({"name": "one", "environment_spec": "spec"})).await;
    let mut spec = spec("echo $WORD");
    spec["environment"] = json!("one");
    let job = api.submit(spec).await;
    for path in ["environments/one", "environment-specs/spec"] {
        remove(&platform, path).await;
    }
    make("environment-specs", spec_of("new")).await;
    first.cancel().await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    assert_eq!(job.json("fabric_run_result").await["response"], "old");
}

#[tokio::test]
async fn h9_the_ethos_tree_lies_below_the_working_directory() {
    let platform = Platform::start().await;
    let api = platform.api();
    let mut agent = shell("cat ../skills/sums/SKILL.md own.txt")["config"].clone();
    agent["skills"] = json!({"paths": ["skills/sums"]});
    api.agent("calc", agent).await;
    let tree = [("skills/sums/SKILL.md", "how to add "), ("workspace/own.txt", "of the agent")];
    api.fileset("calc-ethos", &tree).await;
    let job = api.submit(json!({"agent": "calc", "input": ""})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(job.json("fabric_run_result").await["response"], "how to add of the agent");

    // What the job brings is laid over it.
    api.fileset("work", &[("own.txt", "of the job")]).await;
    let workdir = json!({"base_workdir": "work"});
    let job = api.submit(json!({"agent": "calc", "input": "", "workdir": workdir})).await;
    job.ends(SOON).await;
    assert_eq!(job.json("fabric_run_result").await["response"], "how to add of the job");
}

#[tokio::test]
async fn h10_delete_removes_the_record_and_the_results() {
    let platform = Platform::start().await;
    let api = platform.api();
    let job = api.submit(spec("echo 96")).await;
    job.ends(SOON).await;
    let result = job.result("output_workdir").await;
    let path = format!("{AGENTS}/jobs/execute/{}", job.name);
    remove(&platform, &format!("jobs/execute/{}", job.name)).await;
    for path in [path.clone(), format!("{path}/results/output_workdir/download")] {
        let (status, body) = api.ask(Method::GET, &path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {body}");
    }
    // As the working directory of another job it is gone as well.
    let mut spec = spec("echo never");
    spec["workdir"] = json!({"base_workdir": result["artifact_url"]});
    let execute = format!("{AGENTS}/jobs/execute");
    let (status, body) = api.ask(Method::POST, &execute, Some(json!({"spec": spec}))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
}

#[tokio::test]
async fn h10_cancel_stops_a_running_job() {
    let platform = Platform::start().await;
    let job = platform.api().submit(spec("sleep 88881")).await;
    let runs = || async { (!running_with_argument("88881").is_empty()).then_some(()) };
    eventually("the agent runs", SOON, runs).await;
    job.cancel().await;
    assert_eq!(job.ends(SOON).await["status"], "cancelled");
    assert_eq!(running_with_argument("88881"), [0_u32; 0]);
}
