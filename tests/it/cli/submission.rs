//! Commands that make jobs: each makes one, whatever becomes of the answers.

use std::time::Duration;

use serde_json::Value;

use super::proxy::Proxy;
use super::{fails, json, register_greeter};
use crate::harness::{Job, Options, Platform};

const SOON: Duration = Duration::from_secs(60);

fn jobs(platform: &Platform) -> u64 {
    json(platform, &["jobs", "list"])["pagination"]["total_results"].as_u64().expect("a number")
}

/// Runs a command by way of a proxy; it must succeed.
fn through(proxy: &Proxy, platform: &Platform, args: &[&str]) -> Value {
    json(platform, &[&["--base-url", &proxy.url], args].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o2_a_create_whose_answer_is_lost_makes_one_job() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let proxy = Proxy::to(&platform).await;
    let execute = ["agents", "execute", "--agent", "greeter", "--input", "you"];
    proxy.lose_answers(2);
    let first = through(&proxy, &platform, &execute);
    assert_eq!((proxy.lost(), jobs(&platform)), (2, 1));
    let second = through(&proxy, &platform, &execute);
    assert_ne!(first["id"], second["id"], "each call has a key of its own");

    proxy.lose_answers(1);
    let name = first["name"].as_str().expect("a name");
    let again = through(&proxy, &platform, &["jobs", "rerun", name]);
    assert_eq!((proxy.lost(), jobs(&platform)), (3, 3));
    assert_eq!(again["rerun_of"], first["id"]);
}

#[tokio::test]
async fn a_command_that_is_run_again_under_its_key_makes_one_job() {
    let platform = Platform::start().await;
    register_greeter(&platform, "default", "greeter");
    let execute = ["agents", "execute", "--agent", "greeter", "--idempotency-key", "nightly"];
    let first = json(&platform, &[&execute[..], &["--input", "you"]].concat());
    let again = json(&platform, &[&execute[..], &["--input", "you"]].concat());
    assert_eq!((&first["id"], jobs(&platform)), (&again["id"], 1));
    let said = fails(&platform, &[&execute[..], &["--input", "me"]].concat(), 3);
    assert!(said.contains("Idempotency-Key 'nightly' was given to another request"), "{said}");
}

#[tokio::test]
async fn case_o4_a_rerun_of_a_job_that_was_not_started_in_time_has_a_deadline_of_its_own() {
    let platform = Platform::with(Options { slots: 1, ..Options::default() }).await;
    register_greeter(&platform, "default", "greeter");
    let busy = platform.api().script("sleep 600", serde_json::json!({})).await;
    busy.reaches("active", SOON).await;
    let execute = ["agents", "execute", "--agent", "greeter", "--input", "you"];
    let late = [&execute[..], &["--queue-timeout-seconds", "20", "--name", "late"]].concat();
    let late = Job::new(platform.api(), &json(&platform, &late));
    assert_eq!(late.ends(SOON).await["status_details"]["code"], "queue_timeout");

    busy.cancel().await;
    busy.reaches("cancelled", SOON).await;
    let again = Job::new(platform.api(), &json(&platform, &["jobs", "rerun", "late"]));
    let ended = again.ends(SOON).await;
    assert_eq!(
        (&ended["status"], ended["rerun_of"].as_str()),
        (&"completed".into(), Some(late.id.http().as_str()),)
    );
}
