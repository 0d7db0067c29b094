//! Parts that are away for a while, and come back: agents go on without them, jobs wait, and
//! nobody is told anything that is not so.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use streams::broker::{Broker, Settle};
use streams::phase::StepName;
use streams::topology::{self, ACK_WAIT, Limits};
use tokio::time::{Instant, sleep};

use crate::harness::{
    Api, Database, Job, Nats, Options, Parts, Platform, Stall, eventually, script_agent,
};

const ALL_STEPS: &str = "resolve,stage,invoke,act,archive";

const SOON: Duration = Duration::from_secs(60);

/// The queue gives an unsettled delivery back after 30 s, and what fails is tried again after up
/// to a minute.
const LATER: Duration = Duration::from_secs(240);

/// The keys of a store that comes back as the one that it was.
pub fn with_lasting_keys() -> Options {
    Options::default().set("store.access_key", "lasting").set("store.secret_key", "lasting-secret")
}

/// An agent that says in a file outside that it runs, and its number again and again.
fn ticking(runs: &Path, seconds: u32) -> String {
    let runs = runs.display();
    format!(
        "umask 0; echo $NEMO_JOB_ID >> {runs}; for i in $(seq 1 {seconds}); do echo line $i; \
         echo $i > {runs}.tick; sleep 1; done; echo last"
    )
}

async fn ticks(runs: &Path) {
    let tick = || fs::read_to_string(runs.with_extension("tick")).unwrap_or_default();
    let before = tick();
    let on = || async { (tick() != before).then_some(()) };
    eventually("the agent goes on", SOON, on).await;
}

/// The job ended well, its agent ran once, and its log and facts are whole.
async fn ended_well(parts: &Parts, job: &Job, runs: &Path, seconds: u32) {
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}");
    let ran = fs::read_to_string(runs).expect("the agent ran");
    assert_eq!(ran.lines().filter(|line| *line == job.name).count(), 1, "{ran}");
    let lines: Vec<_> = job.log().await.into_iter().filter(|it| it.starts_with('l')).collect();
    let mut wanted: Vec<_> = (1..=seconds).map(|n| format!("line {n}")).collect();
    wanted.push("last".to_owned());
    assert_eq!(lines, wanted, "every line once and in order");
    for (phase, fact) in job.facts(&*parts.broker().await).await {
        assert!(fact.is_some(), "no fact {phase}");
    }
}

#[tokio::test]
async fn an_agent_outlives_five_minutes_without_the_queue() {
    const AWAY: Duration = Duration::from_secs(300);
    const SECONDS: u32 = 320;
    let mut parts = Parts::on(Database::Sqlite).await;
    let (server, mut worker) = (parts.server(), parts.worker(ALL_STEPS));
    let runs = parts.lender.scratch().join("runs");
    let job = server.api().script(&ticking(&runs, SECONDS), json!({})).await;
    job.reaches("active", SOON).await;
    let nats = parts.nats.as_mut().expect("it is ours");
    nats.kill().await;
    let killed = Instant::now();
    // Who asks meanwhile is told what is known.
    assert_eq!(job.status().await, "active");
    sleep(AWAY.saturating_sub(killed.elapsed())).await;
    ticks(&runs).await;
    assert!(worker.runs(), "the worker waits: {}", worker.log());
    nats.start_again().await;
    ended_well(&parts, &job, &runs, SECONDS).await;
}

#[tokio::test]
async fn the_queue_is_killed_again_and_again_under_load() {
    let mut parts = Parts::on(Database::Sqlite).await;
    let (server, worker) = (parts.server(), parts.worker(ALL_STEPS));
    let (api, runs) = (server.api(), parts.lender.scratch().join("runs"));
    let mut jobs = Vec::new();
    for _ in 0..12 {
        jobs.push(api.script(&ticking(&runs, 2), json!({})).await);
    }
    for begun in [1, 4, 8] {
        let so_many = || async {
            let ran = fs::read_to_string(&runs).unwrap_or_default();
            (ran.lines().count() >= begun).then_some(())
        };
        eventually("more agents have begun", LATER, so_many).await;
        let nats = parts.nats.as_mut().expect("it is ours");
        nats.kill().await;
        nats.start_again().await;
    }
    for job in &jobs {
        ended_well(&parts, job, &runs, 2).await;
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_is_away_while_results_are_saved_and_another_job_is_staged() {
    const AWAY: Duration = Duration::from_secs(20);
    let lender = Platform::with(with_lasting_keys()).await;
    let (door, nats) = (Stall::to(&lender).await, Nats::start());
    let queue = (nats.url().await, Limits::default());
    let mut parts = Parts::of(lender, &door.endpoint, queue, Database::Sqlite);
    let (server, worker) = (parts.server(), parts.worker(ALL_STEPS));
    let (api, go) = (server.api(), parts.lender.scratch().join("go"));
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo kept > kept", go.display());
    let saving = api.script(&script, json!({})).await;
    saving.reaches("active", SOON).await;
    api.fileset("waits", &[("agent.sh", "cat given; echo kept > kept"), ("given", "given\n")])
        .await;

    // The store is there for the submission and goes when the job's input comes to it.
    door.stall(Some("/input/"));
    let staging = api.submit(spec("waits")).await;
    let stalled = || async { (door.stalled() > 0).then_some(()) };
    eventually("the other job is being staged", SOON, stalled).await;
    parts.lender.kill().await;
    let killed = Instant::now();
    door.stall(None);
    fs::write(&go, "").expect("it is written");
    let phase = |job: &Job| {
        let job = job.clone();
        async move { job.record().await["phase"].as_str().map(str::to_owned) }
    };
    // Both are tried in vain.
    for step in ["invoke", "stage"] {
        let tried = || async {
            let log = worker.log();
            let said = |line: &&str| line.contains("trying again later") && line.contains(step);
            log.lines().find(said).map(drop)
        };
        eventually(&format!("{step} is tried"), SOON, tried).await;
    }
    sleep(AWAY.saturating_sub(killed.elapsed())).await;
    assert_eq!(phase(&saving).await.as_deref(), Some("staged"));
    assert_eq!(phase(&staging).await.as_deref(), Some("resolved"));

    parts.lender.start_again(with_lasting_keys());
    door.lead_to(&parts.lender);
    for job in [&saving, &staging] {
        let record = job.ends(LATER).await;
        assert_eq!(record["status"], "completed", "{record}");
        let output = job.directory("output_workdir").await;
        let kept = fs::read_to_string(output.path().join("kept"));
        assert_eq!(kept.expect("it was saved"), "kept\n");
    }
}

fn spec(fileset: &str) -> Value {
    json!({"agent": script_agent(), "input": "", "workdir": {"base_workdir": fileset}})
}

#[tokio::test]
async fn the_database_is_killed_while_jobs_run() {
    const SECONDS: u32 = 8;
    let parts = Parts::on(Database::Postgres).await;
    let (mut server, mut worker) = (parts.server(), parts.worker(ALL_STEPS));
    let (api, runs) = (server.api(), parts.lender.scratch().join("runs"));
    let job = api.script(&ticking(&runs, SECONDS), json!({})).await;
    job.reaches("active", SOON).await;
    api.fileset("later", &[("agent.sh", "echo later")]).await;
    let postgres = parts.postgres.as_ref().expect("it is ours");
    postgres.kill();
    let jobs = "/apis/jobs/v2/workspaces/default/jobs";
    let execute = "/apis/agents/v2/workspaces/default/jobs/execute";
    let submission = json!({"spec": spec("later"), "name": "later"});
    let (one, list, made) = tokio::join!(
        says_why(&api, Method::GET, format!("{jobs}/{}", job.name), None),
        says_why(&api, Method::GET, jobs.to_owned(), None),
        says_why(&api, Method::POST, execute.to_owned(), Some(submission.clone())),
    );
    assert_eq!([one, list, made], [StatusCode::SERVICE_UNAVAILABLE; 3]);
    assert!(server.runs() && worker.runs(), "{}\n{}", server.log(), worker.log());
    postgres.start_again();
    ended_well(&parts, &job, &runs, SECONDS).await;
    let (status, later) = api.ask(Method::POST, execute, Some(submission)).await;
    assert_eq!(status, StatusCode::CREATED, "{later}");
    assert_eq!(Job::new(api, &later).ends(LATER).await["status"], "completed");
}

/// The status of an answer, which says why.
async fn says_why(api: &Api, method: Method, path: String, body: Option<Value>) -> StatusCode {
    let (status, answer) = api.ask(method, &path, body).await;
    assert!(answer["detail"].as_str().is_some_and(|why| why.len() > 20), "{status} {answer}");
    status
}

#[tokio::test]
async fn a_worker_that_stops_leaves_its_agents_to_another_at_its_place() {
    let parts = Parts::on(Database::Sqlite).await;
    let (server, first) = (parts.server(), parts.worker(ALL_STEPS));
    let (api, scratch) = (server.api(), parts.lender.scratch());
    let (runs, go) = (scratch.join("runs"), scratch.join("go"));
    let script = format!(
        "umask 0; echo $NEMO_JOB_ID >> {}; echo line 1; until [ -e {} ]; do sleep 0.05; done; \
         echo last",
        runs.display(),
        go.display()
    );
    let jobs = [api.script(&script, json!({})).await, api.script(&script, json!({})).await];
    for job in &jobs {
        job.reaches("active", SOON).await;
    }
    let second = parts.worker(ALL_STEPS);
    first.stop().await;
    fs::write(&go, "").expect("it is written");
    for job in &jobs {
        ended_well(&parts, job, &runs, 1).await;
    }
    assert_eq!(second.log().matches("post-run action").count(), 2, "{}", second.log());
}

/// Its delivery may come to others for long. Here it does not come at all: the test has it.
#[tokio::test]
async fn a_worker_goes_on_by_itself_with_what_was_begun_at_its_place() {
    const SECONDS: u32 = 3;
    let parts = Parts::on(Database::Sqlite).await;
    let (server, mut worker) = (parts.server(), parts.worker("invoke"));
    let others = parts.worker("resolve,stage,act,archive");
    let (api, runs) = (server.api(), parts.lender.scratch().join("runs"));
    let job = api.script(&ticking(&runs, SECONDS), json!({})).await;
    job.reaches("active", SOON).await;
    worker.kill();
    let broker = parts.broker().await;
    let consumer = topology::step_consumer(StepName::Invoke, "default");
    let came_back = || async { broker.fetch(&consumer, 1).await.ok()?.pop() };
    let delivery = eventually("the delivery comes back", LATER, came_back).await;
    let settler = delivery.settler().expect("it is not settled");
    let keeping = tokio::spawn(async move {
        loop {
            settler.settle(Settle::Progress).await.expect("nats hears");
            sleep(ACK_WAIT / 3).await;
        }
    });
    assert!(worker.start_again(), "{}", worker.log());
    ended_well(&parts, &job, &runs, SECONDS).await;
    keeping.abort();
    delivery.ack().await.expect("nats hears");
    others.stop().await;
}

#[tokio::test]
async fn jobs_go_on_while_the_server_is_away() {
    const SECONDS: u32 = 4;
    let parts = Parts::on(Database::Sqlite).await;
    let (mut server, worker) = (parts.server(), parts.worker(ALL_STEPS));
    let runs = parts.lender.scratch().join("runs");
    let job = server.api().script(&ticking(&runs, SECONDS), json!({})).await;
    job.reaches("active", SOON).await;
    server.signal(Signal::TERM);
    server.has_ended().await;
    let broker = parts.broker().await;
    let archived = || async { job.facts(&*broker).await.pop()?.1 };
    eventually("the job is archived", LATER, archived).await;
    assert!(server.start_again(), "{}", server.log());
    ended_well(&parts, &job, &runs, SECONDS).await;
    worker.stop().await;
}
