//! The figures of the queue, and why a job waits.

use serde_json::{Value, json};
use streams::outcome::Outcome;
use streams::phase::Phase;
use workers::seats::Limits;

use super::JOBS;
use super::harness::{Harness, Setup};
use crate::records::tests::job::{fact, new_job, running, second, waiting};
use crate::records::{Admitted, Job, NewJob};

/// Admits jobs, one a second; all but the last are staged.
async fn jobs(api: &Harness, names: &[&str]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (n, name) in (0..).zip(names) {
        let new = NewJob { created_at: second(n), ..new_job(name) };
        let Ok(Admitted::Fresh(job)) = api.records.jobs().admit(new).await else {
            panic!("{name} is not admitted")
        };
        jobs.push(job);
    }
    let staged: Vec<_> = jobs[..names.len() - 1]
        .iter()
        .map(|job| fact(job.id, Phase::Staged, &Outcome::Succeeded))
        .collect();
    api.records.project(&staged).await.expect("they are taken in");
    jobs
}

/// What a job is said to wait for, by both routes.
async fn message(api: &Harness, job: &str) -> String {
    let record = api.get(&format!("{JOBS}/{job}")).await.body;
    let status = api.get(&format!("{JOBS}/{job}/status")).await.body;
    assert_eq!(record["status_details"]["message"], status["status_details"]["message"]);
    record["status_details"]["message"].as_str().unwrap_or_default().to_owned()
}

async fn figures(api: &Harness) -> Value {
    api.get("/apis/jobs/v2/queue").await.body["data"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_has_figures_and_a_job_that_waits_a_reason() {
    for api in Harness::start_both().await {
        assert_eq!(figures(&api).await, json!([]));
        let jobs = jobs(&api, &["first", "second", "third", "fresh"]).await;
        assert_eq!(message(&api, "first").await, "Subprocess scheduled", "its turn is at hand");
        api.records.project(&[running(jobs[0].id, 1, 5, 0)]).await.expect("it is taken in");
        let mut wanted = json!([{
            "workspace": "default",
            "waiting": 3,
            "oldest_waiting_seconds": 0.0,
            "held": 0,
            "running": 1,
            "max_running": null,
        }]);
        assert_eq!(figures(&api).await, wanted);
        let text =
            "waits for a free slot: 1 jobs of workspace 'default' run, 1 wait before this one";
        assert_eq!(message(&api, "third").await, text);
        assert_eq!(message(&api, "first").await, "Job is running");
        assert_eq!(message(&api, "fresh").await, "", "it is not so far");

        api.post(&format!("{JOBS}/second/pause"), Value::Null).await.status_is(200);
        (wanted[0]["waiting"], wanted[0]["held"]) = (json!(2), json!(1));
        assert_eq!(figures(&api).await, wanted);
        assert_eq!(message(&api, "second").await, "Job is paused");

        let ended = fact(jobs[0].id, Phase::Archived, &Outcome::Succeeded);
        api.records.project(&[ended]).await.expect("it is taken in");
        wanted[0]["running"] = json!(0);
        assert_eq!(figures(&api).await, wanted);
        assert_eq!(message(&api, "third").await, "Subprocess scheduled");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_and_what_no_worker_has_are_reasons_too() {
    let running_limits = Limits { each: 1, ..Limits::default() };
    let api = Harness::set_up(Setup { running_limits, ..Setup::default() }).await;
    let jobs = jobs(&api, &["first", "second", "third", "fresh"]).await;
    api.records.project(&[running(jobs[0].id, 1, 5, 0)]).await.expect("it is taken in");
    let text = "waits: 1 of 1 jobs of workspace 'default' run, 0 wait before this one";
    assert_eq!(message(&api, "second").await, text);
    assert_eq!(figures(&api).await[0]["max_running"], 1);
    api.records.project(&[waiting(jobs[2].id, 20)]).await.expect("it is taken in");
    let record = api.get(&format!("{JOBS}/third")).await.body;
    assert_eq!(record["status_details"]["waiting_for"], "adapter 'x'");
    assert_eq!(message(&api, "third").await, "Subprocess scheduled", "that is said by itself");
}
