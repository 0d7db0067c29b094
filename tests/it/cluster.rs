//! A queue of three servers: whichever is killed, nothing that was confirmed is lost, and a subject
//! takes one fact, whoever leads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use streams::broker::{Broker, Error, Expect, Publication, Published};
use streams::id::JobId;
use streams::jetstream::JetStream;
use streams::phase::Phase;
use streams::subject;
use streams::topology::{Bucket, Limits, StreamName};
use tokio::time::{Instant, sleep};

use crate::harness::{Cluster, Database, Parts, Platform, eventually};

const ALL_STEPS: &str = "resolve,stage,invoke,act,archive";

/// Elections take up to ten seconds each, and a delivery that was lost comes back after thirty.
const LATER: Duration = Duration::from_secs(300);

const JOBS: usize = 30;

/// How often two publishers race for a subject.
const ROUNDS: usize = 1_000;

/// How long one server leads, and how often it does not step down but is killed.
const REIGN: Duration = Duration::from_millis(400);
const KILLED: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_leader_is_killed_every_job_ends_and_runs_once() {
    let mut cluster = Cluster::start().await;
    let lender = Platform::start().await;
    let (endpoint, limits) = (lender.store(), Limits { replicas: 3, ..Limits::default() });
    let parts = Parts::of(lender, &endpoint, (cluster.url(), limits), Database::Sqlite);
    let server = parts.server();
    let workers = [parts.worker(ALL_STEPS), parts.worker(ALL_STEPS)];
    let (api, runs) = (server.api(), parts.lender.scratch().join("runs"));
    let script =
        format!("umask 0; echo $NEMO_JOB_ID >> {}; seq 1 50; sleep 1; echo done", runs.display());
    let mut jobs = Vec::new();
    for _ in 0..JOBS {
        jobs.push(api.script(&script, json!({})).await);
    }
    let leaders = [Some("JOBS"), None, Some("KV_claims"), Some("INTAKE")];
    for (stream, begun) in leaders.into_iter().zip([3, 10, 16, 22]) {
        have_begun(&runs, begun).await;
        let leader = cluster.leader(stream).await;
        println!("{begun} agents have begun: n{leader}, which leads {stream:?}, is killed");
        cluster.kill(leader);
        // Two servers are enough to go on.
        have_begun(&runs, begun + 3).await;
        cluster.start_again(leader).await;
    }
    cluster.is_whole().await;
    let broker = cluster.broker(&cluster.url()).await;
    for job in &jobs {
        let record = job.ends(LATER).await;
        assert_eq!(record["status"], "completed", "{record}");
        for (phase, fact) in job.facts(&broker).await {
            assert!(fact.is_some(), "no fact {phase} of {}", job.name);
        }
        let lines = job.log().await;
        let numbers: Vec<_> = lines.into_iter().filter(|it| it.parse::<u32>().is_ok()).collect();
        let wanted: Vec<_> = (1..=50).map(|n| n.to_string()).collect();
        assert_eq!(numbers, wanted, "the log of {}", job.name);
    }
    let mut ran: Vec<_> = lines(&runs);
    ran.sort();
    let mut wanted: Vec<_> = jobs.iter().map(|job| job.name.clone()).collect();
    wanted.sort();
    assert_eq!(ran, wanted, "each agent ran once");
    for worker in workers {
        worker.stop().await;
    }
}

fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

async fn have_begun(runs: &Path, wanted: usize) {
    let what = format!("{wanted} agents have begun");
    eventually(&what, LATER, || async { (lines(runs).len() >= wanted).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_publishers_that_race_while_leaders_change_one_stores() {
    let mut cluster = Cluster::start().await;
    let (first, second) = (cluster.url_of(0), cluster.url_of(2));
    let publishers = [
        ("first", cluster.broker(&format!("{first},{second},{}", cluster.url_of(1))).await),
        ("second", cluster.broker(&format!("{second},{},{first}", cluster.url_of(1))).await),
    ];
    let mut changes = (0, 0);
    let raced = tokio::select! {
        raced = race(&publishers) => raced,
        never = change_leaders(&mut cluster, &mut changes) => never,
    };
    let (mut unsure, mut untold) = (0, 0);
    for (subject, told) in &raced {
        let stored = told.iter().filter(|told| told.stored).count();
        unsure += told.iter().map(|told| told.unsure).sum::<usize>();
        assert!(stored <= 1, "two are told that they stored {subject}");
        if stored == 0 {
            // The winner's confirmation was lost, and when it asked again its message stood.
            assert!(told.iter().any(|told| told.unsure > 0), "nobody is told of {subject}");
            untold += 1;
        }
    }
    println!(
        "{ROUNDS} races, {} leaders stepped down, {} were killed: {unsure} answers did not come, \
         {untold} winners only heard later that theirs stands",
        changes.0, changes.1
    );
    assert!(changes.0 >= 10 && changes.1 >= 2, "the leaders hardly changed");

    let broker = cluster.broker(&cluster.url()).await;
    let (mut from, mut stand) = (0, 0);
    let all = "jobs.resolved.race.>";
    while let Some(fact) = broker.next(StreamName::Jobs, all, from).await.expect("nats answers") {
        from = fact.sequence + 1;
        stand += 1;
        let told = raced.get(&fact.subject).expect("somebody published it");
        for (told, (name, _)) in told.iter().zip(&publishers) {
            assert!(!told.stored || fact.payload == *name, "{name} lost {}", fact.subject);
        }
    }
    assert_eq!(stand, ROUNDS, "one message on each subject");
}

/// What a publisher was told.
#[derive(Debug)]
struct Told {
    stored: bool,
    /// How often it was told nothing and had to ask again.
    unsure: usize,
}

async fn race(publishers: &[(&'static str, JetStream); 2]) -> BTreeMap<String, [Told; 2]> {
    let mut raced = BTreeMap::new();
    for round in 0..ROUNDS {
        let job = JobId::new();
        let subject = subject::fact(Phase::Resolved, "race", job);
        let publication = |name: &'static str| Publication {
            subject: subject.clone(),
            payload: name.into(),
            // Facts have one, which is the same for whoever publishes; the subject is fence enough.
            message_id: round.is_multiple_of(2).then(|| job.message_id(Phase::Resolved)),
            expect: Expect::Empty,
            traceparent: None,
        };
        let [(one, first), (other, second)] = publishers;
        let (one, other) =
            tokio::join!(told(first, publication(one)), told(second, publication(other)));
        raced.insert(subject, [one, other]);
    }
    raced
}

/// Asks until there is an answer.
async fn told(broker: &JetStream, publication: Publication) -> Told {
    let (began, mut unsure) = (Instant::now(), 0);
    loop {
        match broker.publish(publication.clone()).await {
            Ok(Published::Stored(_)) => return Told { stored: true, unsure },
            Ok(Published::Exists) => return Told { stored: false, unsure },
            Err(error @ (Error::Unavailable(_) | Error::Missing(_))) => {
                assert!(began.elapsed() < LATER, "{error}");
                unsure += 1;
                sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{}: {error}", publication.subject),
        }
    }
}

/// Goes on for as long as it is let; counts leaders that stepped down and that were killed.
async fn change_leaders(
    cluster: &mut Cluster,
    changes: &mut (usize, usize),
) -> BTreeMap<String, [Told; 2]> {
    loop {
        for _ in 0..KILLED {
            sleep(REIGN).await;
            cluster.step_down("JOBS");
            changes.0 += 1;
        }
        let leader = cluster.leader(Some("JOBS")).await;
        cluster.kill(leader);
        changes.1 += 1;
        cluster.leader(Some("JOBS")).await;
        cluster.start_again(leader).await;
    }
}

#[tokio::test]
async fn what_is_confirmed_can_be_read_by_way_of_every_server() {
    let cluster = Cluster::start().await;
    for n in 0..3 {
        let broker = cluster.broker(&cluster.url_of(n)).await;
        for _ in 0..200 {
            let job = JobId::new();
            let key = job.to_string();
            let revision = broker.create(Bucket::Ends, &key, "end".into()).await.expect("stored");
            let entry = broker.get(Bucket::Ends, &key).await.expect("nats answers");
            assert_eq!(entry.map(|entry| entry.revision), revision, "a key, by way of n{n}");

            let subject = subject::logs("default", job);
            let batch = Publication {
                subject: subject.clone(),
                payload: "a batch".into(),
                message_id: None,
                expect: Expect::Empty,
                traceparent: None,
            };
            let published = broker.publish(batch).await.expect("nats answers");
            let next = broker.next(StreamName::Logs, &subject, 0).await.expect("nats answers");
            let next = next.map(|next| Published::Stored(next.sequence));
            assert_eq!(next, Some(published), "a message, by way of n{n}");
        }
    }
}

#[tokio::test]
async fn one_server_of_the_list_is_enough() {
    let mut cluster = Cluster::start().await;
    cluster.broker(&cluster.url()).await;
    cluster.kill(0);
    // A server may be named that does not even exist.
    let list = format!("nats://127.0.0.1:1, {}", cluster.url());
    let said = |command: &str, replicas: &str| {
        let data = tempfile::TempDir::new().expect("a temporary directory");
        let output = Command::new(env!("CARGO_BIN_EXE_errand"))
            .args([command, "--data-dir"])
            .arg(data.path())
            .env("ERRAND__NATS__URL", &list)
            .env("ERRAND__NATS__REPLICAS", replicas)
            .output()
            .expect("errand runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    // What the server led has no leader for a while.
    let well = || async {
        let (_, doctor) = said("doctor", "3");
        doctor.contains("all streams as they should be").then_some(())
    };
    eventually("doctor finds the streams as they should be", LATER, well).await;
    let (well, topology) = said("topology", "3");
    assert!(well, "{topology}");
    // Who has said nothing of copies hears that there are more than he knows.
    let (well, topology) = said("topology", "1");
    assert!(!well, "{topology}");
    assert!(topology.contains("stream JOBS has num_replicas = 3, expected 1"), "{topology}");
}
