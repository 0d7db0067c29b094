//! FC-C: workers that stop, are cut off, come back late or die, and queues that give a job again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::{Value, json};
use streams::broker::Broker;
use streams::id::Attempt;
use streams::phase::{Phase, StepName};
use streams::topology;

use crate::harness::{
    Database, Job, OneWay, Parts, Platform, ask, eventually, processes_of_runs,
    running_with_argument,
};

const SOON: Duration = Duration::from_secs(60);

/// The queue gives an unsettled delivery back after 30 s, and then a claim has to get old.
const LATER: Duration = Duration::from_secs(150);

/// After so many seconds another place takes a claim over.
const LOST_SOON: [(&str, &str); 1] = [("claims.lost_after_seconds", "10")];

const OTHER_STEPS: &str = "resolve,stage,act,archive";

/// Waits until the first attempt of a script has left its mark.
async fn begun(mark: &Path) {
    let there = || async { mark.exists().then_some(()) };
    eventually(&format!("{} is there", mark.display()), SOON, there).await;
}

/// What may never change once a job has ended: its facts, and its results with their bytes.
async fn ended_as(job: &Job, broker: &dyn Broker) -> (Vec<u64>, Vec<Value>, Vec<Vec<u8>>) {
    let facts = job.facts(broker).await.into_iter();
    let facts = facts.map(|(phase, fact)| fact.unwrap_or_else(|| panic!("no {phase}")).sequence);
    let (facts, results) = (facts.collect(), job.results().await);
    let mut bytes = Vec::new();
    for result in &results {
        bytes.push(job.download(result["name"].as_str().expect("a name")).await);
    }
    (facts, results, bytes)
}

/// The attempts of a record: which, where, how it ended and with which code.
fn attempts(record: &Value) -> Vec<(u64, &str, &str, Option<&str>)> {
    let attempts = record["attempts"].as_array().expect("a list").iter();
    let attempts = attempts.map(|end| {
        let times = ["started_at", "ended_at"].map(|key| {
            let at: jiff::Timestamp = end[key].as_str().expect("a time").parse().expect("RFC 3339");
            at
        });
        assert!(times[0] <= times[1], "{end}");
        (
            end["attempt"].as_u64().expect("a number"),
            end["place"].as_str().expect("a place"),
            end["ended"].as_str().expect("a word"),
            end["code"].as_str(),
        )
    });
    attempts.collect()
}

fn assert_lost_once(record: &Value) {
    let attempts = attempts(record);
    let words: Vec<_> = attempts.iter().map(|(n, _, end, code)| (*n, *end, *code)).collect();
    assert_eq!(words, [(1, "failed", Some("worker_lost")), (2, "succeeded", None)], "{record}");
    assert_ne!(attempts[0].1, attempts[1].1, "they were at two places: {record}");
}

/// A worker is paused until another place has taken its jobs over and ended them. Of one job the
/// agent runs on, of the other it ends meanwhile, so that two workers have a result to report.
async fn wakes_up_late(database: Database) {
    let parts = Parts::on(database).await;
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let first = parts.worker_at("first", "invoke", &LOST_SOON);
    let (api, broker, scratch) = (server.api(), parts.broker().await, parts.lender.scratch());
    let (here, go) = (scratch.display(), scratch.join("go"));
    let again = json!({"max_attempts": 2});
    let long = format!("if mkdir {here}/long; then sleep 31001; fi; echo second");
    let long = api.script(&long, again.clone()).await;
    let short = format!(
        "if mkdir {here}/short; then until [ -e {here}/go ]; do sleep 0.05; done; who=first; \
         else who=second; fi; echo $who > who; echo $who"
    );
    let short = api.script(&short, again).await;
    begun(&scratch.join("long")).await;
    begun(&scratch.join("short")).await;

    first.signal(Signal::STOP);
    fs::write(&go, "").expect("it is written");
    let told = parts.place("first").join(format!("runs/{}-1/outcome.json", short.id));
    begun(&told).await;
    let _second = parts.worker_at("second", "invoke", &LOST_SOON);
    let mut before = Vec::new();
    for job in [&long, &short] {
        let record = job.ends(LATER).await;
        assert_eq!(record["status"], "completed", "{record}");
        assert_lost_once(&record);
        assert_eq!(job.json("fabric_run_result").await["response"], "second");
        before.push(ended_as(job, &*broker).await);
    }
    let who = short.directory("output_workdir").await;
    assert_eq!(fs::read_to_string(who.path().join("who")).expect("it is there"), "second\n");
    let gone = || async { running_with_argument("31001").is_empty().then_some(()) };
    eventually("the agent of the paused worker is gone", SOON, gone).await;

    first.signal(Signal::CONT);
    // Each hears first that it lost the claim or its log, or reports and is refused.
    let heard = || async {
        let log = first.log();
        let count = |word| log.matches(word).count();
        let refused =
            [r#""stored":false"#, "was taken over by another", "another worker writes this"];
        (refused.map(count).iter().sum::<usize>() >= 2).then_some(())
    };
    eventually("both late reports are refused", SOON, heard).await;
    for (job, before) in [&long, &short].into_iter().zip(before) {
        assert_eq!(ended_as(job, &*broker).await, before);
        let left =
            processes_of_runs().into_iter().find(|(_, run)| run.starts_with(&job.id.to_string()));
        assert_eq!(left, None);
    }
}

#[tokio::test]
async fn case_c1_case_c10_a_worker_that_wakes_up_late_is_refused_on_sqlite() {
    wakes_up_late(Database::Sqlite).await;
}

#[tokio::test]
async fn case_c1_case_c10_a_worker_that_wakes_up_late_is_refused_on_postgresql() {
    wakes_up_late(Database::Postgres).await;
}

/// The worker hears the queue and is not heard by it. Its agent is gone before another one begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_c2_a_worker_that_is_not_heard_stops_its_agent_in_time() {
    let parts = Parts::on(Database::Sqlite).await;
    let way = OneWay::to(&parts.nats_url()).await;
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let by_way = [("claims.lost_after_seconds", "20"), ("nats.url", &*way.url)];
    let first = parts.worker_at("first", "invoke", &by_way);
    let (api, broker, scratch) = (server.api(), parts.broker().await, parts.lender.scratch());
    let here = scratch.display();
    let script = format!(
        "if mkdir {here}/first; then trap '' TERM; while :; do date +%s%N >> {here}/first.alive; \
         sleep 0.1; done; fi; date +%s%N > {here}/second; echo done"
    );
    let job = api.script(&script, json!({"max_attempts": 2})).await;
    begun(&scratch.join("first.alive")).await;
    way.cut();
    let second = parts.worker_at("second", "invoke", &by_way[..1]);
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}");
    assert_lost_once(&record);
    let time = |file: &str| {
        let text = fs::read_to_string(scratch.join(file)).expect("the agent ran");
        text.lines().last().expect("a line").parse::<u128>().expect("nanoseconds")
    };
    assert!(time("first.alive") < time("second"), "two agents ran at once");
    assert!(first.log().contains("the claim is renewed later"), "{}", first.log());

    let before = ended_as(&job, &*broker).await;
    second.stop().await;
    way.mend();
    // It is back once it runs other jobs; by then all that it had kept back has arrived.
    let other = api.script("echo done", json!({})).await;
    assert_eq!(other.ends(LATER).await["status"], "completed");
    assert_eq!(ended_as(&job, &*broker).await, before);
}

/// Makes the consumer of the workspace `default` as somebody else might have; the server's error.
fn make_foreign_consumer(url: &str, settings: &Value) -> Value {
    let spec = topology::step_consumer(StepName::Invoke, "default");
    let mut config = json!({
        "durable_name": spec.name,
        "filter_subject": spec.filter,
        "ack_policy": "explicit",
        "deliver_policy": "all",
    });
    for (key, value) in settings.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let request = json!({"stream_name": spec.stream.as_str(), "config": config});
    let subject = format!("$JS.API.CONSUMER.DURABLE.CREATE.{}.{}", spec.stream.as_str(), spec.name);
    ask(url, &subject, &request)["error"].take()
}

/// What the server says of it.
fn consumer(url: &str, what: &str) -> Value {
    ask(url, &format!("$JS.API.CONSUMER.{what}.JOBS.invoke_default"), &Value::Null)
}

#[tokio::test]
async fn case_c4_a_durable_with_other_settings_is_told_and_made_anew() {
    let parts = Parts::on(Database::Sqlite).await;
    // The streams are made with the first connection.
    drop(parts.broker().await);
    let url = parts.nats_url();
    let second = 1_000_000_000_u64;
    let settings = json!({"max_deliver": 3, "backoff": [second, 2 * second]});
    assert_eq!(make_foreign_consumer(&url, &settings), Value::Null);

    let doctor = parts.errand(&["doctor"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{said}");
    assert!(said.contains("consumer invoke_default of JOBS has backoff = [1s, 2s]"), "{said}");

    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let worker = parts.worker("invoke");
    worker.says("the queue has other settings than expected").await;
    worker.says("a consumer with other settings is made anew").await;
    let made = || async {
        let config = consumer(&url, "INFO")["config"].clone();
        (config["ack_wait"] == 30 * second).then_some(config)
    };
    let config = eventually("it is made anew", SOON, made).await;
    assert_eq!(config["backoff"], Value::Null, "{config}");
    assert_eq!(config["max_deliver"], -1, "{config}");

    let runs = parts.lender.scratch().join("runs");
    let script = format!("echo run >> {}; sleep 6; echo done", runs.display());
    let job = server.api().script(&script, json!({})).await;
    assert_eq!(job.ends(SOON).await["status"], "completed");
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n");
}

/// Longer than the queue waits for a word, and than a claim may go without one, while the queue
/// gives the job to another place again and again.
#[tokio::test]
async fn case_c5_case_c6_a_long_run_is_one_run() {
    let parts = Parts::on(Database::Sqlite).await;
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let first = parts.worker_at("first", "invoke", &LOST_SOON);
    let (api, broker, runs) =
        (server.api(), parts.broker().await, parts.lender.scratch().join("runs"));
    let script = format!("echo run >> {}; sleep 45; echo done", runs.display());
    let job = api.script(&script, json!({"max_attempts": 3})).await;
    begun(&runs).await;
    let second = parts.worker_at("second", "invoke", &LOST_SOON);
    let spec = topology::step_consumer(StepName::Invoke, "default");
    broker.remove_consumer(&spec).await.expect("it can be removed");
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}\n{}\n{}", first.log(), second.log());
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n");
    assert_eq!(record["attempts"].as_array().map(Vec::len), Some(1), "{record}");
}

/// Waits until the log of an attempt has its name, which its agent says: what a supervisor has not
/// read is in no log when it is killed.
async fn is_named(platform: &Platform, job: &Job, attempt: u32) {
    let log = platform.data().join(format!("runs/{}-{attempt}/agent.log", job.id));
    let name = job.id.attempt_id(Attempt(attempt));
    let there = || async { fs::read_to_string(&log).ok()?.contains(&name).then_some(()) };
    eventually(&format!("attempt {attempt} is named"), SOON, there).await;
}

#[tokio::test]
async fn case_c8_a_worker_that_dies_twice_fails_the_job_and_no_other() {
    let platform = Platform::start().await;
    let api = platform.api();
    let other = api.script("sleep 5; echo done", json!({})).await;
    let script = "echo attempt runs; echo $NEMO_JOB_ATTEMPT_ID >&2; sleep 31081";
    let job = api.script(script, json!({"max_attempts": 2})).await;
    is_named(&platform, &job, 1).await;
    platform.kill_supervisor(&job, 1).await;
    job.reaches("active", SOON).await;
    is_named(&platform, &job, 2).await;
    platform.kill_supervisor(&job, 2).await;
    let record = job.ends(SOON).await;
    let error = &record["error_details"];
    assert_eq!((&record["status"], &error["code"]), (&json!("error"), &json!("worker_lost")));
    let message = error["error"].as_str().expect("a reason");
    assert!(message.starts_with("worker died twice while running this job: "), "{message}");
    let ends = attempts(&record);
    let ends: Vec<_> = ends.iter().map(|(n, _, end, code)| (*n, *end, *code)).collect();
    assert_eq!(ends, [1, 2].map(|n| (n, "failed", Some("worker_lost"))), "{record}");
    assert_eq!(running_with_argument("31081"), [0_u32; 0]);
    // What both attempts said is there to be read, and so is what the last one left.
    let log = job.log().await;
    for attempt in [1, 2] {
        let id = job.id.attempt_id(Attempt(attempt));
        assert!(log.contains(&format!("[stderr] {id}")), "attempt {attempt} is missing: {log:?}");
    }
    assert_eq!(job.json("fabric_error").await["message"], message);
    let names = job.result_names().await;
    assert!(names.contains(&"output_workdir".to_owned()), "{names:?}");
    let artifacts = job.directory("output_artifacts").await;
    let stdout = fs::read_to_string(artifacts.path().join("stdout.txt")).expect("it is kept");
    assert_eq!(stdout, "attempt runs\n");
    assert_eq!(other.ends(SOON).await["status"], "completed");
}

/// The next attempt cannot be begun with: what the last one left is the job's.
#[tokio::test]
async fn case_c8_what_a_lost_attempt_left_is_kept_when_no_other_follows() {
    let platform = Platform::start().await;
    let api = platform.api();
    api.secret("short-lived", "correct-horse-battery").await;
    let spec = json!({
        "max_attempts": 2,
        "environment": {"environment_spec": {"secrets": {"S": "short-lived"}}},
    });
    let job = api.script("echo made > made; echo attempt runs; sleep 31082", spec).await;
    let made = platform.data().join("runs").join(format!("{}-1/base/workspace/made", job.id));
    begun(&made).await;
    let path = "/apis/secrets/v2/workspaces/default/secrets/short-lived";
    let (gone, answer) = api.ask(reqwest::Method::DELETE, path, None).await;
    assert!(gone.is_success(), "{answer}");
    platform.kill_supervisor(&job, 1).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["error_details"]["code"], "secret_missing", "{record}");
    let workdir = job.directory("output_workdir").await;
    assert_eq!(fs::read_to_string(workdir.path().join("made")).expect("it is kept"), "made\n");
    let artifacts = job.directory("output_artifacts").await;
    let stdout = fs::read_to_string(artifacts.path().join("stdout.txt")).expect("it is kept");
    assert_eq!(stdout, "attempt runs\n");
    let result = job.result("output_workdir").await;
    assert_eq!(result["complete"], false, "{result}");
    assert_eq!(result["secret_search_complete"], false, "nobody has searched it: {result}");
    assert_eq!(running_with_argument("31082"), [0_u32; 0]);
}

/// What the agent does to itself is how it ends, however many attempts it may have.
#[tokio::test]
async fn case_c8_an_agents_own_failure_is_no_reason_for_another_attempt() {
    let platform = Platform::start().await;
    let api = platform.api();
    let again = |more: Value| {
        let mut spec = json!({"max_attempts": 3});
        spec.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        spec
    };
    for (script, more, code) in [
        ("kill -9 $PPID; sleep 600", json!({}), "agent_crashed"),
        ("exit 3", json!({}), "agent_failed"),
        ("kill -9 $$", json!({}), "agent_crashed"),
        ("sleep 600", json!({"timeout_seconds": 1}), "timeout"),
        ("sleep 600", json!({"idle_timeout_seconds": 1}), "idle_timeout"),
    ] {
        let record = api.script(script, again(more)).await.ends(SOON).await;
        assert_eq!(record["error_details"]["code"], code, "{script}: {record}");
        let ends = attempts(&record);
        assert_eq!(ends.len(), 1, "{record}");
        assert_eq!(ends[0].3, Some(code), "{record}");
    }
    let cancelled = api.script("sleep 600", again(json!({}))).await;
    cancelled.reaches("active", SOON).await;
    cancelled.cancel().await;
    let record = cancelled.ends(SOON).await;
    assert_eq!((&record["status"], attempts(&record).len()), (&json!("cancelled"), 1), "{record}");
}

/// A job whose delivery was given to somebody who never answered, by a consumer that gives up, and
/// one whose consumer is gone.
async fn is_found(database: Database) {
    let parts = Parts::on(database).await;
    let (server, _others) = (parts.server(), parts.worker(OTHER_STEPS));
    let (broker, url) = (parts.broker().await, parts.nats_url());
    let spec = topology::step_consumer(StepName::Invoke, "default");
    let given_up = server.api().script("echo done", json!({})).await;
    given_up.reaches_phase(Phase::Staged, SOON).await;
    let settings = json!({"max_deliver": 1, "ack_wait": 1_000_000_000_u64});
    // Whoever sweeps may have made ours again in between.
    let replaced = || async {
        broker.remove_consumer(&spec).await.expect("it can be removed");
        let error = make_foreign_consumer(&url, &settings);
        assert!(error.is_null() || error.to_string().contains("already"), "{error}");
        error.is_null().then_some(())
    };
    eventually("the consumer is somebody else's", SOON, replaced).await;
    consumer(&url, "MSG.NEXT");
    let given = Instant::now();
    // Three times as long as that consumer waits for a word.
    let exhausted = || async {
        let over = given.elapsed() > Duration::from_secs(3);
        (over && consumer(&url, "INFO")["num_pending"] == 0).then_some(())
    };
    eventually("the queue has given it up", SOON, exhausted).await;
    let worker = parts.worker("invoke");
    assert_eq!(given_up.ends(SOON).await["status"], "completed");
    worker.stop().await;

    let forgotten = server.api().script("echo done", json!({})).await;
    forgotten.reaches_phase(Phase::Staged, SOON).await;
    broker.remove_consumer(&spec).await.expect("it can be removed");
    let _worker = parts.worker("invoke");
    assert_eq!(forgotten.ends(SOON).await["status"], "completed");
}

#[tokio::test]
async fn case_c9_a_job_that_the_queue_gave_up_is_found_on_sqlite() {
    is_found(Database::Sqlite).await;
}

#[tokio::test]
async fn case_c9_a_job_that_the_queue_gave_up_is_found_on_postgresql() {
    is_found(Database::Postgres).await;
}

/// All together they take longer than the queue waits for a word.
#[tokio::test]
async fn case_c11_fifty_jobs_on_one_slot_are_fifty_runs() {
    let options = crate::harness::Options { slots: 1, ..Default::default() };
    let platform = Platform::with(options).await;
    let (api, broker, scratch) = (platform.api(), platform.broker().await, platform.scratch());
    let (runs, go) = (scratch.join("runs"), scratch.join("go"));
    let script = |what: &str| format!("umask 0; {what}; echo $NEMO_JOB_ID >> {}", runs.display());
    let first = script(&format!("until [ -e {} ]; do sleep 0.05; done", go.display()));
    let rest = script("sleep 0.7");
    let mut jobs = vec![api.script(&first, json!({})).await];
    jobs.extend(join_all((1..50).map(|_| api.script(&rest, json!({})))).await);
    let began = Instant::now();
    fs::write(&go, "").expect("it is written");
    let spec = topology::step_consumer(StepName::Invoke, "default");
    let all = || async {
        let backlog = broker.backlog(&spec).await.expect("it answers").expect("it exists");
        assert!(backlog.unsettled <= 1, "more was pulled than there are slots: {backlog:?}");
        (backlog.waiting == 0 && backlog.unsettled == 0).then_some(())
    };
    eventually("all jobs have run", LATER, all).await;
    assert!(began.elapsed() > topology::ACK_WAIT, "{:?}", began.elapsed());
    for job in &jobs {
        assert_eq!(job.ends(SOON).await["status"], "completed");
    }
    let runs = fs::read_to_string(runs).expect("they ran");
    let mut ran: Vec<_> = runs.lines().collect();
    assert_eq!(ran.len(), 50);
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran.len(), 50, "each ran once");
}
