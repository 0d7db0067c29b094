//! Control groups of a platform's runs: limits that jobs ask for, and ends that leave nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Options, Platform, eventually, running_with_argument};

const SOON: Duration = Duration::from_secs(60);

fn limited(limits: Value) -> Value {
    json!({"environment": {"compute_spec": {"resources": {"limits": limits}}}})
}

/// The groups of a platform that are there, by the id that it keeps beside its runs.
fn groups(platform: &Platform) -> Vec<PathBuf> {
    let id = fs::read_to_string(platform.data().join("runs/.cgroup")).expect("it has an id");
    let parent = format!("errand-{}-", id.trim().replace('-', ""));
    let mut found = Vec::new();
    named(Path::new("/sys/fs/cgroup"), &parent, &mut found);
    found
}

fn named(directory: &Path, prefix: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        } else {
            named(&entry.path(), prefix, found);
        }
    }
}

fn was_refused_a_process(platform: &Platform) -> bool {
    let runs = groups(platform).into_iter().flat_map(fs::read_dir).flatten().flatten();
    let mut events = runs.flat_map(|run| fs::read_to_string(run.path().join("pids.events")));
    events.any(|told| told.trim() != "max 0")
}

#[tokio::test]
async fn a_job_that_needs_more_memory_than_its_limit_says_so() {
    let platform = Platform::start().await;
    let api = platform.api();
    let limits = limited(json!({"memory": "64Mi", "cpu": "1500m"}));
    let job = api.script("echo kept > kept; tail /dev/zero; exit 9", limits).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "error", "{record}");
    assert_eq!(record["error_details"]["code"], "oom_killed", "{record}");
    let told = record["error_details"].to_string();
    assert!(told.contains("killed for want of memory: limit 64 MiB, peak 6"), "{told}");
    let log = job.log().await.join("\n");
    assert!(log.contains("Processes of the agent were killed for want of memory"), "{log}");
    let kept = job.directory("output_workdir").await;
    assert_eq!(fs::read_to_string(kept.path().join("kept")).expect("it is there"), "kept\n");
    assert_eq!(groups(&platform), Vec::<PathBuf>::new());

    // The same program, with room enough for what it does.
    let job = api.script("head -c 1000 /dev/zero | tail", limited(json!({"memory": "1Gi"}))).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
}

#[tokio::test]
async fn case_b2_a_storm_of_forks_is_cancelled_without_a_survivor() {
    let mut options = Options::default();
    options.env.push(("ERRAND__WORKER__MAX_PROCESSES".to_owned(), "60".to_owned()));
    let platform = Platform::with(options).await;
    let storm = "mkfifo never; f(){ sh -c 'sleep 0.01; true' 77721 & f & sleep 0.01; f; }\n\
        f & read x < never";
    let job = platform.api().script(storm, json!({})).await;
    let began = Instant::now();
    let rages = || async {
        (was_refused_a_process(&platform) && began.elapsed() > Duration::from_secs(2)).then_some(())
    };
    eventually("the storm has reached its bound", SOON, rages).await;
    job.cancel().await;
    assert_eq!(job.ends(SOON).await["status"], "cancelled");
    assert_eq!(running_with_argument("77721"), [0_u32; 0]);
    let log = job.log().await.join("\n");
    assert!(log.contains("The agent may have 60 processes and threads at a time"), "{log}");
    assert_eq!(groups(&platform), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn case_b1_nothing_that_shed_session_and_environment_outlives_its_job() {
    let platform = Platform::start().await;
    let api = platform.api();
    let escape = |argument: &str, then: &str| {
        format!("(env -i /usr/bin/setsid /bin/sleep {argument} & :); {then}")
    };
    for (argument, then, more, status) in [
        ("77731", "exit 0", json!({}), "completed"),
        ("77732", "exit 1", json!({}), "error"),
        ("77733", "sleep 600", json!({"timeout_seconds": 2}), "error"),
        ("77734", "sleep 600", json!({}), "cancelled"),
    ] {
        let job = api.script(&escape(argument, then), more).await;
        if status == "cancelled" {
            let runs = || async { (!running_with_argument(argument).is_empty()).then_some(()) };
            eventually("it has escaped", SOON, runs).await;
            job.cancel().await;
        }
        assert_eq!(job.ends(SOON).await["status"], status);
        assert_eq!(running_with_argument(argument), [0_u32; 0]);
    }
    assert_eq!(groups(&platform), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn case_b8_a_lock_that_a_cancelled_agent_held_is_free_for_the_next() {
    let platform = Platform::start().await;
    let api = platform.api();
    let lock = platform.scratch().join("x.lock").display().to_string();
    let first = api.script(&format!("flock {lock} sleep 77741"), json!({})).await;
    let holds = || async { (!running_with_argument("77741").is_empty()).then_some(()) };
    eventually("the first holds the lock", SOON, holds).await;
    first.cancel().await;
    first.reaches("cancelled", SOON).await;
    let second = api.script(&format!("flock -w 5 {lock} true"), json!({})).await;
    assert_eq!(second.ends(SOON).await["status"], "completed");
}

#[tokio::test]
async fn a_program_of_an_action_has_a_group_with_the_limits_of_its_job() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let own = directory.path().join("greedy");
    fs::create_dir_all(&own).expect("a directory");
    let manifest = json!({
        "kind": "it.greedy", "title": "Greedy", "description": "Takes all memory there is.",
        "command": ["/bin/sh", "run.sh"],
    });
    fs::write(own.join("action.json"), manifest.to_string()).expect("a manifest");
    let program = "(env -i /usr/bin/setsid /bin/sleep 77751 & :); tail /dev/zero; exit 3";
    fs::write(own.join("run.sh"), program).expect("a program");
    let mut options = Options::default();
    let installed = directory.path().display().to_string();
    options.env.push(("ERRAND__ACTIONS__DIRECTORY".to_owned(), installed));
    let platform = Platform::with(options).await;
    let mut more = limited(json!({"memory": "64Mi"}));
    more["post_run_action"] = json!({"kind": "it.greedy", "config": {}});
    let job = platform.api().script("echo done", more).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "action_failed", "{record}");
    let told = record["error_details"].to_string();
    assert!(told.contains("killed for want of memory: limit 64 MiB"), "{told}");
    assert_eq!(running_with_argument("77751"), [0_u32; 0]);
    assert_eq!(groups(&platform), Vec::<PathBuf>::new());
}
