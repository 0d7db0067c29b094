//! FC-O: one submission, one job, also over a restart; and a queue that has no room for more.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use streams::broker::{self, Broker};
use streams::id::JobId;
use streams::topology::Limits;

use crate::harness::{Database, Options, Parts, Platform, eventually, script_agent, submission};

const SOON: Duration = Duration::from_secs(60);

async fn keyed(platform: &Platform, key: &str, input: &str) -> (StatusCode, Value) {
    let base = platform.run["http"].as_str().expect("run.json says");
    let url = format!("{base}/apis/agents/v2/workspaces/default/jobs/execute");
    let body = json!({"spec": {"agent": script_agent(), "input": input}});
    let request = reqwest::Client::new().post(url).header("idempotency-key", key).json(&body);
    let answer = request.send().await.expect("the platform answers");
    (answer.status(), answer.json().await.expect("JSON"))
}

#[tokio::test]
async fn case_o1_a_key_is_known_after_a_restart_and_runs_nothing_again() {
    let mut platform =
        Platform::with(Options::default().set("retention.finished_seconds", 0)).await;
    let (status, first) = keyed(&platform, "nightly", "one").await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let job = crate::harness::Job::new(platform.api(), &first);
    job.ends(SOON).await;
    // Also when the job's messages are gone, with all that the queue knew of it.
    let broker = platform.broker().await;
    let gone = || async { job.facts(&*broker).await.iter().all(|it| it.1.is_none()).then_some(()) };
    eventually("the job's facts have left the streams", SOON, gone).await;
    drop(broker);

    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let (status, again) = keyed(&platform, "nightly", "one").await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &first["id"]), "{again}");
    let job = job.at(platform.api());
    assert_eq!(again["status"], job.status().await, "it is as it ended");
    let facts = job.facts(&*platform.broker().await).await;
    assert!(facts.iter().all(|(_, fact)| fact.is_none()), "nothing is published again");
    let (status, refused) = keyed(&platform, "nightly", "two").await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
}

/// Small enough to be full of a few dozen jobs.
const INTAKE_BYTES: u64 = 32 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_l4_a_full_intake_refuses_before_anything_is_recorded_and_jobs_go_on() {
    let parts = Parts::on(Database::Sqlite).await;
    let limits = Limits { intake_max_bytes: INTAKE_BYTES, ..Limits::default() };
    let broker = parts.broker_with(limits).await;
    let server = parts.server_with(&[("ERRAND__RETENTION__FINISHED_SECONDS", "0")]);
    let worker = parts.worker("resolve,stage,invoke,act,archive");
    let api = server.api();
    let flag = parts.lender.scratch().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done; echo done", flag.display());
    let runs = api.script(&script, json!({})).await;
    runs.reaches("active", SOON).await;
    // Held before they run: whoever waits keeps its place in the queue.
    worker.stop().await;

    let path = "/apis/agents/v2/workspaces/default/jobs/execute";
    let body = json!({"spec": {"agent": script_agent(), "input": ""}});
    let mut made = 1;
    let refused = loop {
        let (status, answer) = api.ask(Method::POST, path, Some(body.clone())).await;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            break answer;
        }
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        made += 1;
        assert!(made < 200, "it never was full");
    };
    assert_eq!(
        refused["detail"],
        "Too many submissions wait. Running jobs go on; try again later."
    );
    let foreign = async || {
        let body = json!({"spec": {}, "padding": "x".repeat(1024)});
        broker.publish(submission(JobId::new(), &body)).await
    };
    // What is kept in reserve is theirs, and then they are refused as well.
    let mut last = foreign().await;
    for _ in 0..INTAKE_BYTES / 1024 {
        if last.is_ok() {
            last = foreign().await;
        }
    }
    assert!(matches!(last, Err(broker::Error::Full(_))), "{last:?}");
    // What was known of the room counts for a moment. This one is refused in any case.
    let nobody = json!({"spec": {"agent": "nobody", "input": ""}});
    let known = || async {
        let (status, _) = api.ask(Method::POST, path, Some(nobody.clone())).await;
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    };
    eventually("the server knows that it is full", SOON, known).await;
    let (status, _) = api.ask(Method::POST, path, Some(body.clone())).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let rerun = format!("/apis/jobs/v2/workspaces/default/jobs/{}/rerun", runs.name);
    let (status, _) = api.ask(Method::POST, &rerun, None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);

    // Each record has its fact: nothing was recorded that could not be published.
    let jobs = api.get("/apis/jobs/v2/workspaces/default/jobs?page_size=1000").await;
    let jobs = jobs["data"].as_array().expect("a list").clone();
    assert_eq!(jobs.len(), made);
    for job in jobs {
        let job = crate::harness::Job::new(api.clone(), &job);
        let facts = job.facts(&*broker).await;
        assert!(facts[0].1.is_some(), "job {} has no first fact", job.name);
    }

    // The job that runs goes on, the others run, and there is room again.
    std::fs::write(&flag, "").expect("it is written");
    let _worker = parts.worker("resolve,stage,invoke,act,archive");
    assert_eq!(runs.ends(SOON).await["status"], "completed");
    let room = || async {
        let (status, _) = api.ask(Method::POST, path, Some(body.clone())).await;
        (status == StatusCode::CREATED).then_some(())
    };
    eventually("there is room again", Duration::from_secs(300), room).await;
}
