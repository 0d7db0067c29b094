//! FC-D: jobs that would be stuck in pending or running for ever.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use streams::phase::StepName;
use streams::topology;

use crate::conformance::adapter::{self, returns};
use crate::harness::{
    Database, Job, Options, Parts, Platform, assert_none_runs, eventually, processes_of_runs,
    running_with_argument, send,
};

const SOON: Duration = Duration::from_secs(60);

/// The queue gives an unsettled delivery back after 30 s.
const LATER: Duration = Duration::from_secs(120);

const OTHER_STEPS: &str = "resolve,stage,act,archive";

async fn runs(argument: &str) {
    let running = || async { (!running_with_argument(argument).is_empty()).then_some(()) };
    eventually(&format!("sleep {argument} runs"), SOON, running).await;
}

/// The supervisor of a job's first attempt, as its run directory has it.
fn supervisor(runs: &Path, job: &Job) -> Value {
    let started = fs::read(runs.join(format!("{}-1/started", job.id))).expect("it was started");
    serde_json::from_slice(&started).expect("it is JSON")
}

fn pid(started: &Value) -> u32 {
    started["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process id")
}

/// A program of somebody else, which must be there at the end.
struct Foreign(Child);

impl Foreign {
    fn start() -> Self {
        Self(Command::new("sleep").arg("31999").spawn().expect("it starts"))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One agent goes on without its platform; of another one everything is killed but what it started
/// outside of its session, and its number is somebody else's when the platform comes back.
#[tokio::test]
async fn case_d1_everything_is_killed_and_nothing_is_stuck_or_strayed() {
    let mut platform = Platform::start().await;
    let (api, scratch) = (platform.api(), platform.scratch());
    let go = scratch.join("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo done", go.display());
    let goes_on = api.script(&script, json!({})).await;
    let lost = api.script("(setsid sleep 31011 &); sleep 31012", json!({})).await;
    runs("31011").await;
    runs("31012").await;
    goes_on.reaches("active", SOON).await;

    platform.kill().await;
    let run = platform.data().join("runs");
    let mut started = supervisor(&run, &lost);
    let killed = pid(&started);
    send(killed, Signal::KILL);
    let gone = || async { (!crate::harness::is_running(killed)).then_some(()) };
    eventually("the supervisor is gone", SOON, gone).await;
    let mut foreign = Foreign::start();
    started["pid"] = json!(foreign.0.id());
    let file = run.join(format!("{}-1/started", lost.id));
    fs::write(file, started.to_string()).expect("it is written");

    let platform = platform.restart(Options::default()).await;
    let (goes_on, lost) = (goes_on.at(platform.api()), lost.at(platform.api()));
    let record = lost.ends(LATER).await;
    assert_eq!(record["error_details"]["code"], "worker_lost", "{record}");
    for argument in ["31011", "31012"] {
        assert_none_runs(argument);
    }
    assert!(matches!(foreign.0.try_wait(), Ok(None)), "a foreign program was ended");
    fs::write(&go, "").expect("it is written");
    let record = goes_on.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}");
    let name = lost.id.to_string();
    assert!(!processes_of_runs().iter().any(|(_, run)| run.starts_with(&name)));
}

/// A worker that has not what a job needs leaves it to one that has.
async fn waits_for_its_adapter(database: Database) {
    let parts = Parts::on(database).await;
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let _ignorant = parts.worker_at("first", "invoke", &[("worker.slots", "1")]);
    let api = server.api();
    let job = api.submit(adapter::spec()).await;
    let says = || async {
        let record = job.record().await;
        (record["status_details"]["message"] == "no worker offers adapter 'nvidia.fabric.test'")
            .then_some(record)
    };
    let record = eventually("the reason is told", SOON, says).await;
    assert_eq!(record["status"], "pending", "{record}");
    assert_eq!(record["status_details"]["waiting_for"], "adapter 'nvidia.fabric.test'");
    assert_eq!(record["attempts"], json!([]));

    let mut hasty = adapter::spec();
    hasty["queue_timeout_seconds"] = json!(2);
    let hasty = api.submit(hasty).await;
    let given_up = api.submit(adapter::spec()).await;
    given_up.cancel().await;
    let other = api.script("echo done", json!({})).await;
    assert_eq!(other.ends(SOON).await["status"], "completed", "no slot is kept");
    assert_eq!(hasty.ends(SOON).await["error_details"]["code"], "queue_timeout");
    assert_eq!(given_up.ends(SOON).await["status"], "cancelled");

    let result = json!({"status": "succeeded", "output": {"response": "96"}});
    let directory = adapter::directory(&returns(&result));
    let dirs = directory.path().display().to_string();
    let _able = parts.worker_at("second", "invoke", &[("agents.jobs.adapter_dirs", &dirs)]);
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_eq!(record["status_details"].get("waiting_for"), None, "{record}");
}

#[tokio::test]
async fn case_d4_a_job_waits_for_a_worker_with_its_adapter_on_sqlite() {
    waits_for_its_adapter(Database::Sqlite).await;
}

#[tokio::test]
async fn case_d4_a_job_waits_for_a_worker_with_its_adapter_on_postgresql() {
    waits_for_its_adapter(Database::Postgres).await;
}

/// Whoever watches is told why, and an adapter that is installed later is found.
#[tokio::test]
async fn case_d4_an_adapter_that_is_installed_later_is_found() {
    let directory = crate::harness::open_directory();
    let options = Options::default().set("agents.jobs.adapter_dirs", directory.path().display());
    let platform = Platform::with(options).await;
    let job = platform.api().submit(adapter::spec()).await;
    let says = || async {
        let details = job.record().await["status_details"]["waiting_for"].take();
        details.is_string().then_some(())
    };
    eventually("the reason is told", SOON, says).await;
    let watch = ["jobs", "watch", &job.name, "--timeout", "3"];
    let watched = platform.cli().args(watch).output().expect("it runs");
    let words = String::from_utf8_lossy(&watched.stderr).into_owned();
    assert!(words.contains("no worker offers adapter 'nvidia.fabric.test'"), "{words}");

    let result = json!({"status": "succeeded", "output": {"response": "96"}});
    let installed = adapter::directory(&returns(&result));
    for file in fs::read_dir(installed.path()).expect("it is there").flatten() {
        fs::copy(file.path(), directory.path().join(file.file_name())).expect("it is copied");
    }
    assert_eq!(job.ends(SOON).await["status"], "completed");
}

/// The worker is gone in its time, and no job with it: their agents go on, and the next worker at
/// the place takes them up. That is what stands for the case's "re-queued".
#[tokio::test]
async fn case_d5_shutting_a_worker_down_ends_no_job() {
    let parts = Parts::on(Database::Sqlite).await;
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let slots = [("worker.slots", "3")];
    let worker = parts.worker_at("place", "invoke", &slots);
    let (api, scratch) = (server.api(), parts.lender.scratch());
    let here = scratch.display();
    let script = |n: u32| {
        format!(
            "echo run >> {here}/runs.{n}; until [ -e {here}/go ]; do sleep 0.05; done; \
             echo out > out; echo done"
        )
    };
    let jobs = join_all((0..3).map(|n| {
        let (api, script) = (api.clone(), script(n));
        async move { api.script(&script, json!({})).await }
    }))
    .await;
    for job in &jobs {
        job.reaches("active", SOON).await;
    }
    worker.stop().await;
    for job in &jobs {
        assert_eq!(job.status().await, "active");
        // Its runner was started; the agent itself may be a moment later.
        let run = format!("{}-1", job.id);
        let goes_on =
            || async { processes_of_runs().iter().any(|(_, name)| *name == run).then_some(()) };
        eventually("it goes on", SOON, goes_on).await;
    }
    fs::write(scratch.join("go"), "").expect("it is written");
    let _again = parts.worker_at("place", "invoke", &slots);
    for (n, job) in jobs.iter().enumerate() {
        let record = job.ends(LATER).await;
        assert_eq!(record["status"], "completed", "{record}");
        let runs = fs::read_to_string(scratch.join(format!("runs.{n}"))).expect("it ran");
        assert_eq!(runs, "run\n");
        let out = job.directory("output_workdir").await;
        assert!(out.path().join("out").is_file(), "its results are saved");
    }
}

#[tokio::test]
async fn case_d6_workers_go_on_after_the_queue_was_away_and_lost_its_consumers() {
    let mut parts = Parts::on(Database::Sqlite).await;
    let (server, mut worker) = (parts.server(), parts.worker("resolve,stage,invoke,act,archive"));
    let api = server.api();
    let first = api.script("echo done", json!({})).await;
    assert_eq!(first.ends(SOON).await["status"], "completed");

    let nats = parts.nats.as_mut().expect("the queue is ours");
    nats.kill().await;
    nats.start_again().await;
    let second = api.script("echo done", json!({})).await;
    assert_eq!(second.ends(LATER).await["status"], "completed");

    let broker = parts.broker().await;
    let mut consumers = topology::shared_consumers();
    consumers.push(topology::step_consumer(StepName::Invoke, "default"));
    for consumer in &consumers {
        broker.remove_consumer(consumer).await.expect("it can be removed");
    }
    let third = api.script("echo done", json!({})).await;
    assert_eq!(third.ends(LATER).await["status"], "completed");
    assert!(worker.runs(), "it is the same process");
}

/// Stops everything inside a run: the host, the adapter and the agent.
async fn hang(job: &Job) {
    let name = format!("{}-1", job.id);
    let inside = || async {
        let found: Vec<_> =
            processes_of_runs().into_iter().filter(|(_, run)| *run == name).collect();
        // The host, the adapter, the shell and its child.
        (found.len() >= 4).then_some(found)
    };
    for (pid, _) in eventually("the agent runs", SOON, inside).await {
        send(pid, Signal::STOP);
    }
}

#[tokio::test]
async fn case_d9_a_host_that_hangs_is_ended_by_the_limits() {
    let platform = Platform::with(Options::default().set("worker.grace_seconds", 1)).await;
    let api = platform.api();
    let limits = [
        ("31091", json!({"timeout_seconds": 6}), "timeout"),
        ("31092", json!({"idle_timeout_seconds": 4}), "idle_timeout"),
    ];
    for (argument, limit, code) in limits {
        let job = api.script(&format!("sleep {argument}; echo never"), limit).await;
        runs(argument).await;
        hang(&job).await;
        let record = job.ends(SOON).await;
        assert_eq!(record["error_details"]["code"], code, "{record}");
        assert_none_runs(argument);
    }
    let job = api.script("sleep 31093; echo never", json!({})).await;
    runs("31093").await;
    hang(&job).await;
    job.cancel().await;
    assert_eq!(job.ends(SOON).await["status"], "cancelled");
    assert_none_runs("31093");
}

#[tokio::test]
async fn case_d10_a_batch_ends_with_its_stragglers() {
    let options = Options { slots: 4, ..Options::default() }.set("worker.grace_seconds", 1);
    let platform = Platform::with(options).await;
    let api = platform.api();
    let straggler = "trap '' TERM; exec >&- 2>&-; while :; do sleep 31100; done";
    let is_straggler = |n: usize| n % 20 == 7;
    let jobs = join_all((0..60).map(|n| {
        let script = if is_straggler(n) { straggler } else { "echo done" };
        api.script(script, json!({"timeout_seconds": if is_straggler(n) { 2 } else { 600 }}))
    }))
    .await;
    for (n, job) in jobs.iter().enumerate() {
        let record = job.ends(LATER).await;
        if is_straggler(n) {
            assert_eq!(record["error_details"]["code"], "timeout", "{record}");
        } else {
            assert_eq!(record["status"], "completed", "{record}");
        }
    }
    assert_none_runs("31100");
    let list = "/apis/jobs/v2/workspaces/default/jobs?filter[status]=active";
    let (status, active) = api.ask(Method::GET, list, None).await;
    assert!(status.is_success(), "{status} {active}");
    assert_eq!(active["data"], json!([]), "{active}");
}
