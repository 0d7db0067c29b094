//! A queue of three servers: whichever is killed, nothing that was confirmed is lost.

mod race;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use streams::broker::{Broker, Error, Expect, Publication, Published};
use streams::id::JobId;
use streams::subject;
use streams::topology::{Bucket, Limits, StreamName};

use crate::harness::{Cluster, Database, Parts, Platform, answered, eventually};

const ALL_STEPS: &str = "resolve,stage,invoke,act,archive";

/// Elections take up to ten seconds each, and a delivery that was lost comes back after thirty.
const LATER: Duration = Duration::from_secs(300);

const JOBS: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_leader_is_killed_every_job_ends_and_runs_once() {
    let mut cluster = Cluster::start().await;
    // The streams are made with patience: the server tries once.
    drop(cluster.broker(&cluster.url()).await);
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

/// Writes what is new, until it is confirmed. The number is unknown when it stands already: a try
/// before has stored it, of which the word was lost.
async fn confirmed<Fut>(mut write: impl FnMut() -> Fut) -> Option<u64>
where
    Fut: Future<Output = Result<Option<u64>, Error>>,
{
    let mut tries = 0;
    let stored = answered(|| {
        tries += 1;
        write()
    });
    let stored = stored.await;
    assert!(stored.is_some() || tries > 1, "what is new stands already");
    stored
}

#[tokio::test]
async fn what_is_confirmed_can_be_read_by_way_of_every_server() {
    let cluster = Cluster::start().await;
    for n in 0..3 {
        let broker = cluster.broker(&cluster.url_of(n)).await;
        for _ in 0..200 {
            let job = JobId::new();
            let key = job.to_string();
            let created = confirmed(|| broker.create(Bucket::Ends, &key, "end".into())).await;
            let entry = answered(|| broker.get(Bucket::Ends, &key)).await;
            let revision = entry.map(|entry| entry.revision);
            assert!(revision.is_some(), "a key, by way of n{n}");
            assert_eq!(revision, created.or(revision), "a key, by way of n{n}");

            let subject = subject::logs("default", job);
            let batch = Publication {
                subject: subject.clone(),
                payload: "a batch".into(),
                message_id: None,
                expect: Expect::Empty,
                traceparent: None,
            };
            let publish = || async {
                broker.publish(batch.clone()).await.map(|published| match published {
                    Published::Stored(sequence) => Some(sequence),
                    Published::Exists => None,
                })
            };
            let published = confirmed(publish).await;
            let next = answered(|| broker.next(StreamName::Logs, &subject, 0)).await;
            let next = next.map(|next| next.sequence);
            assert!(next.is_some(), "a message, by way of n{n}");
            assert_eq!(next, published.or(next), "a message, by way of n{n}");
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
