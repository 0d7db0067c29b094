//! An object store that misbehaves: whatever it does, no agent gets wrong bytes, no result is
//! listed that is not there whole, and nobody who downloads takes wrong bytes for right ones.

mod proxy;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Api, Job, Options, Platform, eventually, script_agent};
use proxy::FaultyStore;

/// How many jobs, and how much the larger ones leave: several parts.
const JOBS: usize = 12;
const LARGE_BYTES: usize = 20_000_000;

/// A job may have to be tried again and again.
const LATER: Duration = Duration::from_secs(120);

/// A step is tried again after two seconds, a request sooner; a person would do that as well.
const TRIES: usize = 30;

/// A platform's own, and the one in which it keeps the objects of another.
const BUCKETS: [&str; 2] = ["errand", "borrowed"];

const FILESETS: &str = "/apis/files/v2/workspaces/default/filesets";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wrong_byte_reaches_an_agent_or_a_listed_result() {
    let seed = std::env::var("ERRAND_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4);
    println!("seed {seed}");
    // Only its object store is used.
    let lender = Platform::start().await;
    let proxy = in_front_of(&lender, seed).await;
    let options = Options { slots: 4, ..Options::default() }
        .with_store_of(&lender, &proxy.endpoint())
        .set("retention.unfinished_seconds", 20);
    let platform = Platform::with(options).await;
    let api = platform.api();

    let jobs = join_all((0..JOBS).map(|n| submit(&api, n))).await;
    let mut saved = 0;
    for job in &jobs {
        let record = job.ends(LATER).await;
        saved += check(&lender, &api, job, &record).await;
    }
    assert!(saved >= JOBS * 3, "only {saved} results were saved");
    let happened = proxy.happened();
    println!("{saved} results, in spite of {happened:?}");
    assert_eq!(happened.len(), 11, "every kind of fault had its turn: {happened:?}");

    // What was given up in the storm is taken away after it.
    proxy.calm_down();
    let objects = lender.data().join("objects");
    let clean = || async { left_behind(&objects).is_empty().then_some(()) };
    eventually("nothing unfinished is left in the store", Duration::from_secs(60), clean).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_the_store_never_takes_is_save_failed_and_the_reason_is_told() {
    let lender = Platform::start().await;
    let proxy = in_front_of(&lender, 1).await;
    proxy.refuse_for_good("/1/output_workdir");
    let options = Options::default()
        .with_store_of(&lender, &proxy.endpoint())
        .set("worker.saving_seconds", 10);
    let platform = Platform::with(options).await;
    let job = platform.api().script("echo kept > file; echo done", json!({})).await;
    let record = job.ends(LATER).await;
    assert_eq!(record["error_details"]["code"], "save_failed", "{record}");
    let error = record["error_details"]["error"].as_str().expect("a reason");
    assert!(error.contains("result 'output_workdir'"), "{error}");
    assert_eq!(
        job.result_names().await,
        ["fabric_run_result", "input_workdir", "output_artifacts"]
    );
    assert_eq!(check(&lender, &platform.api(), &job, &record).await, 3);
}

#[tokio::test]
async fn nothing_is_listed_before_it_is_whole_and_nothing_changes_after() {
    let mut platform = Platform::with(Options::default().hold_at("invoke:saved")).await;
    let script = "head -c 9000000 /dev/urandom > out; echo done";
    let job = platform.api().script(script, json!({})).await;
    platform.holds().await;
    assert_eq!(job.result_names().await, ["input_workdir"], "the others are stored, not told");
    platform.kill().await;
    let platform = platform.restart(Options::default()).await;
    let job = job.at(platform.api());
    assert_eq!(job.ends(LATER).await["status"], "completed");
    let listed = job.results().await;
    assert_eq!(listed.len(), 4);
    assert_eq!(check(&platform, &platform.api(), &job, &job.record().await).await, 4);
    platform.api().script("true", json!({})).await.ends(LATER).await;
    assert_eq!(job.results().await, listed);
    assert_eq!(check(&platform, &platform.api(), &job, &job.record().await).await, 4);
}

async fn in_front_of(lender: &Platform, seed: u64) -> FaultyStore {
    FaultyStore::start(lender.run["s3"]["endpoint"].as_str().expect("run.json says"), seed).await
}

/// A job that refuses to work on wrong files and says what it leaves.
async fn submit(api: &Api, n: usize) -> Job {
    let fileset = format!("faulty-{n}");
    let large: String = (0..40_000).map(|line| format!("{n} {line} of some length\n")).collect();
    let small = format!("small {n}\n");
    let sum = |text: &str| hex::encode(Sha256::digest(text));
    let sums = format!("{}  large\n{}  small\n", sum(&large), sum(&small));
    let bytes = if n.is_multiple_of(4) { LARGE_BYTES } else { 50_000 };
    let script = format!(
        "sha256sum -c --quiet sums >&2 || {{ echo wrong bytes; exit 1; }}\n\
         head -c {bytes} /dev/urandom > out; sha256sum < out"
    );
    until_accepted(api, Method::POST, FILESETS, json!({"name": fileset})).await;
    for (name, text) in
        [("agent.sh", &script), ("large", &large), ("small", &small), ("sums", &sums)]
    {
        let path = format!("{FILESETS}/{fileset}/-/{name}");
        let put = || async { api.put(&path, text).await.is_success().then_some(()) };
        eventually("the file is stored", LATER, put).await;
    }
    let spec = json!({"agent": script_agent(), "input": "", "workdir": {"base_workdir": fileset}});
    let path = "/apis/agents/v2/workspaces/default/jobs/execute";
    Job::new(api.clone(), &until_accepted(api, Method::POST, path, json!({"spec": spec})).await)
}

async fn until_accepted(api: &Api, method: Method, path: &str, body: Value) -> Value {
    for _ in 0..TRIES {
        let (status, answer) = api.ask(method.clone(), path, Some(body.clone())).await;
        if status.is_success() {
            return answer;
        }
        // What was refused may have been done all the same.
        if status == 409 {
            return answer;
        }
        assert!(status.is_server_error(), "{method} {path}: {status} {answer}");
    }
    panic!("{method} {path} was never accepted");
}

/// Says how many results a job has, all of which are whole.
async fn check(lender: &Platform, api: &Api, job: &Job, record: &Value) -> usize {
    let code = record["error_details"]["code"].as_str().unwrap_or_default();
    let honest = record["status"] == "completed" || ["save_failed", "stage_failed"].contains(&code);
    assert!(honest, "{record}");
    let results = job.results().await;
    for result in &results {
        let name = result["name"].as_str().expect("a name");
        let sha256 = result["sha256"].as_str().expect("a digest");
        let file = stored(&lender.data().join("objects"), job, name);
        let is_there = std::fs::read(&file).expect("a listed result is stored");
        assert_eq!(hex::encode(Sha256::digest(&is_there)), sha256, "{name} in the store");
        let bytes = downloaded(api, job, name).await;
        assert_eq!(hex::encode(Sha256::digest(&bytes)), sha256, "{name} as it is downloaded");
    }
    // Only those of this test say what they leave.
    if record["status"] == "completed" && job.log().await.iter().any(|l| l.ends_with("  -")) {
        let said: Value = serde_json::from_slice(&downloaded(api, job, "fabric_run_result").await)
            .expect("the run result is JSON");
        let bundle = downloaded(api, job, "output_workdir").await;
        let directory = tempfile::TempDir::new().expect("a directory");
        let (pick, limits) = (Default::default(), Default::default());
        workers::bundle::unpack(&bundle[..], &pick, directory.path(), "single", limits)
            .expect("the bundle unpacks");
        let out = std::fs::read(directory.path().join("out")).expect("it was saved");
        let said =
            said["response"].as_str().expect("a response").trim_end_matches([' ', '-', '\n']);
        assert_eq!(said, hex::encode(Sha256::digest(out)), "what the agent left is what is saved");
    }
    results.len()
}

/// Downloads until the download is whole. One that is wrong must not look whole, and a wrong one
/// is what the caller compares.
async fn downloaded(api: &Api, job: &Job, result: &str) -> Vec<u8> {
    let path =
        format!("/apis/jobs/v2/workspaces/default/jobs/{}/results/{result}/download", job.name);
    for _ in 0..TRIES {
        if let Some(bytes) = api.try_bytes(&path).await {
            return bytes;
        }
    }
    panic!("{path} was never whole");
}

/// Where the store has a result on its disk.
fn stored(objects: &Path, job: &Job, name: &str) -> std::path::PathBuf {
    let places = BUCKETS.into_iter().flat_map(|bucket| {
        let directory = objects.join(bucket).join("jobs/default").join(job.id.to_string());
        [
            directory.join("input").join(format!("{name}.tar.gz")),
            directory.join("1").join(format!("{name}.tar.gz")),
            directory.join("1").join(format!("{name}.json")),
        ]
    });
    let found = places.into_iter().find(|place| place.is_file());
    found.unwrap_or_else(|| panic!("{name} of {} is nowhere", job.name))
}

/// Names of unfinished uploads and temporary files on the store's disk.
pub fn left_behind(objects: &Path) -> BTreeSet<String> {
    let names = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let is_left = |name: &String| name.starts_with(".tmp.") || name.contains(".upload");
    let waiting =
        names(objects).into_iter().flat_map(|bucket| names(&objects.join(bucket).join("incoming")));
    names(objects).into_iter().filter(is_left).chain(waiting).collect()
}
