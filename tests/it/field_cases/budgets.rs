//! Staging and saving have budgets of their own, whatever the agent's limit: an object store that
//! hangs does not hang a job.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Options, Platform, Stall, eventually};

const SOON: Duration = Duration::from_secs(60);

struct Hanging {
    platform: Platform,
    stall: Stall,
    _lender: Platform,
}

async fn hanging(change: impl FnOnce(Options) -> Options) -> Hanging {
    let lender = Platform::start().await;
    let stall = Stall::to(&lender).await;
    let options = Options::default().with_store_of(&lender, &stall.endpoint);
    Hanging { platform: Platform::with(change(options)).await, stall, _lender: lender }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_working_directory_that_is_not_staged_in_its_time_fails_the_job() {
    let Hanging { platform, stall, _lender } =
        hanging(|options| options.set("worker.staging_seconds", 2)).await;
    stall.stall(Some("GET /borrowed/blobs/"));
    let job = platform.api().script("echo done", json!({})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "stage_failed", "{record}");
    let error = record["error_details"]["error"].as_str().expect("a reason");
    assert!(error.contains("longer than 2 s (worker.staging_seconds)"), "{error}");
    assert!(error.contains("bytes were packed by then"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_a_staging_that_hangs_and_so_does_the_limit_of_the_queue() {
    let Hanging { platform, stall, _lender } = hanging(|options| options).await;
    let api = platform.api();
    stall.stall(Some("GET /borrowed/blobs/"));
    let job = api.script("echo done", json!({})).await;
    let hangs = || async { (stall.stalled() > 0).then_some(()) };
    eventually("the staging hangs", SOON, hangs).await;
    job.cancel().await;
    job.reaches("cancelled", SOON).await;
    let late = api.script("echo done", json!({"queue_timeout_seconds": 1})).await;
    let record = late.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "queue_timeout", "{record}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_saved_in_time_is_listed_and_the_rest_named() {
    let Hanging { platform, stall, _lender } =
        hanging(|options| options.set("worker.saving_seconds", 10)).await;
    let api = platform.api();
    stall.stall(Some("/1/output_workdir"));
    let success = api.script("echo kept > file; echo done", json!({})).await;
    let failure = api.script("echo kept > file; exit 3", json!({})).await;
    let record = success.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "save_failed", "{record}");
    let error = record["error_details"]["error"].as_str().expect("a reason");
    let named = "result 'output_workdir' was not saved within 10 s (worker.saving_seconds)";
    assert_eq!(error, named);
    assert_eq!(failure.ends(SOON).await["error_details"]["code"], "agent_failed");
    // One result that hangs does not take the others with it.
    for job in [success, failure] {
        let saved = ["fabric_run_result", "input_workdir", "output_artifacts"];
        assert_eq!(job.result_names().await, saved);
    }
    // An agent's limit is none for its results.
    stall.stall(None);
    let script = "head -c 3000000 /dev/urandom > file; sleep 600";
    let late = api.script(script, json!({"timeout_seconds": 1})).await;
    assert_eq!(late.ends(SOON).await["error_details"]["code"], "timeout");
    assert!(late.result_names().await.iter().any(|name| name == "output_workdir"));
}
