//! What the sweeper takes out of the object store, and what it must leave there.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use workers::store::{Store, StoreConfig, key};

use crate::harness::{Api, Database, Options, Platform, Postgres, eventually};

const SOON: Duration = Duration::from_secs(60);

const FILESETS: &str = "/apis/files/v2/workspaces/default/filesets";

/// A platform that keeps nothing for long, and the database that it may need.
async fn platform(database: Database) -> (Platform, Option<Postgres>) {
    let postgres = (database == Database::Postgres).then(Postgres::start);
    let mut options =
        Options::default().set("retention.unnamed_seconds", 1).set("retention.finished_seconds", 1);
    if let Some(postgres) = &postgres {
        options = options.set("database.url", postgres.url());
    }
    (Platform::with(options).await, postgres)
}

/// The platform's store, behind its back.
fn store(platform: &Platform) -> Store {
    let s3: StoreConfig = serde_json::from_value(platform.run["s3"].clone()).expect("run.json");
    Store::new(&s3)
}

fn blob_of(contents: &str) -> String {
    key::blob(&hex::encode(Sha256::digest(contents)))
}

async fn is_there(store: &Store, key: &str) -> bool {
    store.size(key).await.expect("the store answers").is_some()
}

async fn goes(store: &Store, key: &str) {
    let gone = || async { (!is_there(store, key).await).then_some(()) };
    eventually(&format!("{key} is gone"), SOON, gone).await;
}

async fn delete(api: &Api, path: &str) {
    let (status, body) = api.ask(Method::DELETE, path, None).await;
    assert!(status.is_success(), "{path}: {status} {body}");
}

/// A blob lives while a fileset or a job that has yet to end names it.
async fn blobs_are_collected(database: Database) {
    let (platform, _postgres) = platform(database).await;
    let (api, store) = (platform.api(), store(&platform));
    let script = "cat data; echo done";
    api.fileset("pinned", &[("agent.sh", script), ("data", "pinned")]).await;
    api.fileset("live", &[("data", "live"), ("old", "old")]).await;
    let agent = crate::harness::script_agent();
    let hold = |name: &str| format!("/apis/jobs/v2/workspaces/default/jobs/{name}/pause");
    let spec = json!({"agent": agent, "input": "", "workdir": {"base_workdir": "pinned"}});
    // All slots are taken until the job is held back.
    let blockers = join_all((0..2).map(|_| api.script("sleep 600", json!({})))).await;
    for blocker in &blockers {
        blocker.reaches("active", SOON).await;
    }
    let job = api.submit(spec).await;
    let (status, body) = api.ask(Method::POST, &hold(&job.name), None).await;
    assert!(status.is_success(), "{status} {body}");

    delete(&api, &format!("{FILESETS}/pinned")).await;
    delete(&api, &format!("{FILESETS}/live/-/old")).await;
    // By then all that nothing names was collected.
    goes(&store, &blob_of("old")).await;
    for named in ["pinned", script, "live"] {
        assert!(is_there(&store, &blob_of(named)).await, "'{named}' is named");
    }
    for blocker in &blockers {
        blocker.cancel().await;
    }
    let resume = hold(&job.name).replace("/pause", "/resume");
    let (status, body) = api.ask(Method::POST, &resume, None).await;
    assert!(status.is_success(), "{status} {body}");
    assert_eq!(job.ends(SOON).await["status"], "completed");
    goes(&store, &blob_of("pinned")).await;
    goes(&store, &blob_of(script)).await;
    assert_eq!(api.bytes(&format!("{FILESETS}/live/-/data")).await, b"live");
    // What was collected can be stored again.
    api.upload("live", "old", "old").await;
    assert_eq!(api.bytes(&format!("{FILESETS}/live/-/old")).await, b"old");
    let copies = || async {
        let page = store.list(key::UNNAMED, None).await.expect("the store answers");
        page.objects.is_empty().then_some(())
    };
    eventually("no mark and no copy is left", SOON, copies).await;
}

#[tokio::test]
async fn blobs_that_nothing_names_are_collected_on_sqlite() {
    blobs_are_collected(Database::Sqlite).await;
}

#[tokio::test]
async fn blobs_that_nothing_names_are_collected_on_postgresql() {
    blobs_are_collected(Database::Postgres).await;
}

/// The same bytes are named and let go again and again, while the collector is at it.
#[tokio::test]
async fn bytes_that_are_named_again_while_they_are_collected_stay() {
    let (platform, _) = platform(Database::Sqlite).await;
    let api = platform.api();
    api.fileset("fs", &[]).await;
    let until = Instant::now() + Duration::from_secs(25);
    let large = "x".repeat(1_200_000);
    let one = |n: u64| {
        let (api, large) = (api.clone(), &large);
        async move {
            let contents =
                if n.is_multiple_of(4) { format!("{large}{n}") } else { format!("small {n}") };
            let path = format!("{FILESETS}/fs/-/{n}");
            let mut rounds = 0_u64;
            while Instant::now() < until {
                api.upload("fs", &n.to_string(), contents.clone()).await;
                // The times are the test: the collector comes once a second, and each of these at
                // other moments.
                let pause = (n * 137 + rounds * 211) % 1100;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                let (status, _) = api.ask(Method::GET, &path, None).await;
                assert_eq!(status, StatusCode::OK, "{n} in round {rounds}");
                delete(&api, &path).await;
                let pause = 1000 + (n * 191 + rounds * 307) % 2100;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                rounds += 1;
            }
            rounds
        }
    };
    let rounds = join_all((0..16).map(one)).await;
    assert!(rounds.iter().all(|rounds| *rounds > 2), "{rounds:?}");
    assert!(platform.log().contains("removed blobs that nothing names"), "it was at it");
}

/// What an attempt left that no fact lists goes once the job is finished; its results stay.
#[tokio::test]
async fn objects_that_no_fact_lists_are_removed_after_the_job() {
    let (platform, _) = platform(Database::Sqlite).await;
    let (api, store, go) = (platform.api(), store(&platform), platform.scratch().join("go"));
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo out > out", go.display());
    let job = api.script(&script, json!({})).await;
    job.reaches("active", SOON).await;
    let prefix = key::job("default", job.id);
    let strays = ["1/fabric_error.json", "2/output_workdir.tar.gz", "7/files/stray"];
    for stray in strays {
        store.put(&format!("{prefix}{stray}"), "stray".into()).await.expect("it is stored");
    }
    std::fs::write(&go, "").expect("it is written");
    assert_eq!(job.ends(SOON).await["status"], "completed");
    for stray in strays {
        goes(&store, &format!("{prefix}{stray}")).await;
    }
    let names = job.result_names().await;
    assert_eq!(names, ["fabric_run_result", "input_workdir", "output_artifacts", "output_workdir"]);
    for name in names {
        assert!(!job.download(&name).await.is_empty(), "{name}");
    }
    assert!(!job.log().await.is_empty());
}
