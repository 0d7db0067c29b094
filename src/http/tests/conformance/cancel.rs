//! `api/test_cancel_rerun.py` and `api/test_pause_resume.py`.
//!
//! Not here, and why:
//! * `job_rerun_functionality`, `job_cancel_rerun_lifecycle`, `job_rerun_active_job`,
//!   `job_rerun_nonexistent_job`: rerun is a route of the reference's tests only.
//!
//! `job_pause_functionality` and `job_pause_resume_lifecycle` differ: a pause holds a job back
//! before its agent is started, and an agent that runs is not stopped.

use serde_json::json;
use streams::outcome::Outcome;
use streams::phase::Phase;

use super::{JOBS, ask, execute, get, rest, submit, tell, until};
use crate::http::tests::harness::Harness;
use crate::records::tests::job as story;
use crate::records::{Job, News};

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
    assert_eq!(ask(&api, "run-1", "pause").await["status"], "pausing");
    tell(&api, &until(&job, Phase::Resolved, &Outcome::Succeeded)).await;
    assert_eq!(ask(&api, "run-1", "pause").await["status"], "pausing", "again");
    assert_eq!(get(&api, "run-1/steps/execute-agent").await["status"], "pausing");
}

/// The facts of a job that is staged, and of which no worker has said anything.
async fn staged(api: &Harness) -> Job {
    let job = story::admit(&api.records, "run-1").await;
    let mut changes = until(&job, Phase::Staged, &Outcome::Succeeded);
    changes.retain(|change| matches!(change.news, News::Fact(_)));
    tell(api, &changes).await;
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_pause_functionality() {
    let api = Harness::start().await;
    let job = staged(&api).await;
    assert_eq!(get(&api, "run-1").await["status"], "pending");
    assert_eq!(ask(&api, "run-1", "pause").await["status"], "paused");
    assert_eq!(get(&api, "run-1/steps/execute-agent").await["status"], "paused");
    tell(&api, &[story::running(job.id, 1, 21, 0)]).await;
    assert_eq!(get(&api, "run-1").await["status"], "active", "the pause came too late");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_resume_functionality() {
    let api = Harness::start().await;
    staged(&api).await;
    ask(&api, "run-1", "pause").await;
    assert_eq!(ask(&api, "run-1", "resume").await["status"], "resuming");
    assert_eq!(get(&api, "run-1/steps/execute-agent").await["status"], "resuming");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_pause_resume_lifecycle() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    assert_eq!(ask(&api, "run-1", "pause").await["status"], "pausing");
    let mut changes = until(&job, Phase::Staged, &Outcome::Succeeded);
    let running = changes.pop_if(|change| !matches!(change.news, News::Fact(_)));
    tell(&api, &changes).await;
    assert_eq!(get(&api, "run-1").await["status"], "paused");
    for _ in 0..2 {
        assert_eq!(ask(&api, "run-1", "resume").await["status"], "resuming");
        assert_eq!(ask(&api, "run-1", "pause").await["status"], "paused", "any number of times");
    }
    assert_eq!(ask(&api, "run-1", "resume").await["status"], "resuming");
    tell(&api, &Vec::from_iter(running)).await;
    unchanged(&api, "active").await;
    tell(&api, &rest(&job, &Outcome::Succeeded)).await;
    unchanged(&api, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_cancel_while_resuming() {
    let api = Harness::start().await;
    staged(&api).await;
    ask(&api, "run-1", "pause").await;
    ask(&api, "run-1", "resume").await;
    assert_eq!(ask(&api, "run-1", "cancel").await["status"], "cancelling");
    assert_eq!(ask(&api, "run-1", "pause").await["status"], "cancelling");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_resume_no_paused_steps() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    assert_eq!(ask(&api, "run-1", "resume").await["status"], "created");
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
