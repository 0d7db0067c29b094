//! `api/test_cancel_rerun.py` and `api/test_pause_resume.py`.
//!
//! Not here, and why:
//! * `job_rerun_functionality`, `job_cancel_rerun_lifecycle`, `job_rerun_active_job`,
//!   `job_rerun_nonexistent_job`: rerun is a route of the reference's tests only.
//! * `job_pause_functionality`, `job_resume_functionality`, `job_pause_resume_lifecycle`,
//!   `job_cancel_while_resuming`: nothing is paused here. A pause is answered with the job as it
//!   is, which the tests below hold for every status that a job can have.

use serde_json::json;
use streams::outcome::Outcome;
use streams::phase::Phase;

use super::{JOBS, ask, execute, get, rest, submit, tell, until};
use crate::http::tests::harness::Harness;
use crate::records::tests::job as story;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_cancel_functionality() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Staged, &Outcome::Succeeded)).await;
    let before = get(&api, "run-1").await;
    assert_eq!(before["status"], "active");
    let after = ask(&api, "run-1", "cancel").await;
    assert_eq!(after["status"], "cancelling");
    assert_eq!(after["attempt_id"], before["attempt_id"]);
    assert_eq!(get(&api, "run-1/steps/execute-agent").await["status"], "cancelling");
    let tasks = get(&api, "run-1/steps/execute-agent/tasks").await;
    assert_eq!(tasks["data"][0]["status"], "cancelling");

    let typed = api.post(&format!("{}/run-1/cancel", execute()), json!({})).await;
    assert_eq!((typed.status, &typed.body["status"]), (200, &json!("cancelling")), "again");
    let end = Outcome::Cancelled { message: "somebody asked for it".to_owned() };
    tell(&api, &rest(&job, &end)).await;
    let ended = get(&api, "run-1").await;
    assert_eq!((&ended["status"], &ended["error_details"]), (&json!("cancelled"), &json!(null)));
    assert_eq!(ended["status_details"]["exit_code"], 143);
    assert_eq!(ask(&api, "run-1", "cancel").await, ended, "what has ended is left as it is");
    let results = get(&api, "run-1/results").await["data"].clone();
    assert!(results.to_string().contains("input_workdir"), "what was saved remains: {results}");
}

/// The reference's job is cancelled when the answer comes. Ours is once a worker has written that
/// its agent was never started, which is a moment later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_cancel_no_active_steps() {
    let api = Harness::start().await;
    submit(&api, "run-1").await;
    assert_eq!(get(&api, "run-1").await["status"], "created");
    assert_eq!(ask(&api, "run-1", "cancel").await["status"], "cancelling");
    let shown = get(&api, "run-1").await;
    assert_eq!(shown["status_details"]["message"], "Job is cancelling");
    assert_eq!(get(&api, "run-1/logs").await["total"], 0);
    assert_eq!(get(&api, "run-1/results").await["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_cancel_nonexistent_job() {
    let api = Harness::start().await;
    let missing = json!({"detail": "Job 'nope' not found in workspace 'default'."});
    for at in [format!("{JOBS}/nope"), format!("{}/nope", execute())] {
        api.post(&format!("{at}/cancel"), json!({})).await.answers(404, missing.clone());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_pause_pending_job() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Resolved, &Outcome::Succeeded)).await;
    unchanged(&api, "pending").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_resume_no_paused_steps() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    unchanged(&api, "created").await;
    tell(&api, &until(&job, Phase::Staged, &Outcome::Succeeded)).await;
    unchanged(&api, "active").await;
    tell(&api, &until(&job, Phase::Archived, &Outcome::Succeeded)).await;
    unchanged(&api, "completed").await;
}

/// Pause and resume answer the job as it is.
async fn unchanged(api: &Harness, status: &str) {
    let before = get(api, "run-1").await;
    assert_eq!(before["status"], status);
    for what in ["pause", "resume"] {
        assert_eq!(ask(api, "run-1", what).await, before, "{what} of a job that is {status}");
    }
    assert_eq!(get(api, "run-1").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_pause_nonexistent_job() {
    nonexistent("pause").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_resume_nonexistent_job() {
    nonexistent("resume").await;
}

async fn nonexistent(what: &str) {
    let api = Harness::start().await;
    let missing = json!({"detail": "Job 'nope' not found in workspace 'default'."});
    api.post(&format!("{JOBS}/nope/{what}"), json!({})).await.answers(404, missing);
    let typed = api.post(&format!("{}/nope/{what}", execute()), json!({})).await;
    typed.answers(404, json!({"detail": "Not Found"}));
}
