//! The main job, end to end: six facts, whole results, nothing left behind.

use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use streams::broker::{Broker, Expect, Publication, Published};
use streams::phase::Phase;
use streams::subject;

use crate::harness::{Platform, running_with_argument, script_agent};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_job_leaves_six_facts_and_whole_results() {
    let platform = Platform::start().await;
    let job = platform.api().script("cat > got.txt; echo 96", json!({"input": "12 * 8"})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");

    let broker = platform.broker().await;
    for (phase, fact) in job.facts(&*broker).await {
        assert!(fact.is_some(), "no fact {phase}");
        refuses_a_second(&platform, phase, &job).await;
    }
    let names = ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"];
    assert_eq!(job.result_names().await, names);
    for result in job.results().await {
        let bytes = job.download(result["name"].as_str().expect("a name")).await;
        assert_eq!(result["sha256"], hex::encode(Sha256::digest(&bytes)), "{result}");
        assert_eq!(result["size"], bytes.len(), "{result}");
        assert_eq!(result["complete"], true, "{result}");
    }
    let run_result = job.json("fabric_run_result").await;
    assert_eq!(run_result["status"], "succeeded");
    assert_eq!(run_result["response"], "96");
    let workdir = job.directory("output_workdir").await;
    let got = std::fs::read_to_string(workdir.path().join("got.txt")).expect("the agent wrote it");
    assert_eq!(got, "12 * 8");
}

#[tokio::test]
async fn directories_of_an_agent_are_read_as_they_are_written() {
    let platform = Platform::start().await;
    let api = platform.api();
    let mut agent = script_agent();
    agent["config"]["harnesses"]["script"]["settings"]["command"] =
        json!(["/bin/sh", "-c", "echo kept > kept; echo made > ../../made/by"]);
    let environment =
        json!({"provider": "local", "workspace": "a/b/../w/.", "artifacts": "x/../made"});
    agent["config"]["environment"] = environment;
    let job = api.submit(json!({"agent": agent, "input": ""})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    for (result, file) in [("output_workdir", "kept"), ("output_artifacts", "by")] {
        assert!(job.directory(result).await.path().join(file).is_file(), "{result}");
    }
}

#[tokio::test]
async fn however_a_job_ends_six_facts_stand() {
    let options = crate::harness::Options { slots: 1, ..Default::default() };
    let platform = Platform::with(options).await;
    let api = platform.api();
    let failed = api.script("exit 3", json!({})).await;
    failed.ends(SOON).await;
    let timed_out = api.script("sleep 600", json!({"timeout_seconds": 1})).await;
    timed_out.ends(SOON).await;
    let cancelled = api.script("sleep 600", json!({})).await;
    cancelled.reaches("active", SOON).await;
    let queued = api.script("echo never", json!({})).await;
    queued.cancel().await;
    queued.ends(SOON).await;
    cancelled.cancel().await;
    cancelled.ends(SOON).await;
    let broker = platform.broker().await;
    for job in [failed, timed_out, cancelled, queued] {
        for (phase, fact) in job.facts(&*broker).await {
            assert!(fact.is_some(), "no fact {phase} of {}", job.name);
            refuses_a_second(&platform, phase, &job).await;
        }
    }
}

/// A second message on a fact's subject is refused by the server itself, also when it comes
/// without any header of ours.
async fn refuses_a_second(platform: &Platform, phase: Phase, job: &crate::harness::Job) {
    let broker = platform.broker().await;
    let publication = Publication {
        subject: subject::fact(phase, "default", job.id),
        payload: "{}".into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    let published = broker.publish(publication).await.expect("the server answers");
    assert_eq!(published, Published::Exists, "a second {phase} fact");
}

#[tokio::test]
async fn a_foreign_submit_fact_becomes_a_job() {
    let platform = Platform::start().await;
    let broker = platform.broker().await;
    platform.api().fileset("src", &[("agent.sh", "echo hello")]).await;
    let id = streams::id::JobId::new();
    let agent = crate::harness::script_agent();
    let spec = json!({"agent": agent, "input": "", "workdir": {"base_workdir": "src"}});
    let publication = Publication {
        subject: subject::fact(Phase::Submitted, "default", id),
        payload: json!({"spec": spec, "name": "by-fact"}).to_string().into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    broker.publish(publication).await.expect("it is stored");
    let path = "/apis/jobs/v2/workspaces/default/jobs/by-fact";
    let api = platform.api();
    let completed = || async {
        let (_, record) = api.ask(reqwest::Method::GET, path, None).await;
        (record["status"] == "completed").then_some(record)
    };
    let record = crate::harness::eventually("the job completes", SOON, completed).await;
    assert_eq!(record["id"], id.http());
}

#[tokio::test]
async fn a_foreign_submit_fact_that_cannot_be_run_is_refused_visibly() {
    let platform = Platform::start().await;
    let broker = platform.broker().await;
    let id = streams::id::JobId::new();
    let publication = Publication {
        subject: subject::fact(Phase::Submitted, "default", id),
        payload: json!({"spec": {"agent": "nobody", "input": ""}}).to_string().into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    broker.publish(publication).await.expect("it is stored");
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}", id.http());
    let api = platform.api();
    let refused = || async {
        let (_, record) = api.ask(reqwest::Method::GET, &path, None).await;
        (record["status"] == "error").then_some(record)
    };
    let record = crate::harness::eventually("the job is refused", SOON, refused).await;
    assert_eq!(record["error_details"]["code"], "rejected", "{record}");
    let error = record["error_details"]["error"].as_str().unwrap_or_default();
    assert!(error.contains("Agent 'nobody' not found."), "{record}");
}

#[tokio::test]
async fn a_finished_job_leaves_no_process_and_can_be_deleted() {
    let platform = Platform::start().await;
    let job = platform.api().script("(setsid sh -c 'sleep 73571' &); exit 0", json!({})).await;
    job.ends(SOON).await;
    assert_eq!(running_with_argument("73571"), [0_u32; 0]);
    let path = format!("/apis/agents/v2/workspaces/default/jobs/execute/{}", job.name);
    let (status, _) = platform.api().ask(reqwest::Method::DELETE, &path, None).await;
    assert_eq!(status, 204);
    let (status, body) = platform.api().ask(reqwest::Method::GET, &path, None).await;
    let detail = format!("Job '{}' not found in workspace 'default'.", job.name);
    assert_eq!((status.as_u16(), &body["detail"]), (404, &json!(detail)));
    for (phase, fact) in job.facts(&*platform.broker().await).await {
        assert_eq!(fact, None, "fact {phase} of a deleted job");
    }
}
