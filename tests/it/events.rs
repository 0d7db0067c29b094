//! Following a job by server-sent events while parts of the platform come and go.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::harness::events::{Event, Reader};
use crate::harness::{Api, Database, Job, Options, Parts, Platform, Postgres};

const SOON: Duration = Duration::from_secs(60);

/// A job whose agent waits for a file.
async fn waiting_for(api: &Api, file: &Path) -> Job {
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo done", file.display());
    api.script(&script, json!({})).await
}

async fn open(api: &Api, job: &Job, last: Option<&Event>) -> Reader {
    let last = last.map(|event| event.id.as_str());
    let opened = Reader::open(&api.url(&job.path("/events")), None, last).await;
    opened.expect("it is a stream")
}

/// Reads until the agent runs.
async fn until_active(reader: &mut Reader) -> Vec<Event> {
    let mut seen = Vec::new();
    while seen.last().is_none_or(|event: &Event| event.data["status"] != "active") {
        seen.push(reader.next().await.expect("the agent is told to run"));
    }
    seen
}

#[tokio::test]
async fn a_reader_misses_nothing_when_the_platform_is_killed_on_sqlite() {
    a_reader_misses_nothing_when_the_platform_is_killed(Options::default()).await;
}

#[tokio::test]
async fn a_reader_misses_nothing_when_the_platform_is_killed_on_postgresql() {
    let postgres = Postgres::start();
    let options = Options::default().set("database.url", postgres.url());
    a_reader_misses_nothing_when_the_platform_is_killed(options).await;
}

async fn a_reader_misses_nothing_when_the_platform_is_killed(options: Options) {
    let mut platform = Platform::with(options.clone()).await;
    let go = platform.scratch().join("go");
    let job = waiting_for(&platform.api(), &go).await;
    let mut reader = open(&platform.api(), &job, None).await;
    let mut seen = until_active(&mut reader).await;
    platform.kill().await;
    assert_eq!(reader.next().await, None, "the connection broke");
    // What happens meanwhile is told by the platform that comes back.
    fs::write(&go, "").expect("it is written");
    platform.start_again(options);

    let api = platform.api();
    let mut reader = open(&api, &job, seen.last()).await;
    seen.extend(reader.rest().await);
    let whole = open(&api, &job, None).await.rest().await;
    assert_eq!(seen, whole, "no gap and no repetition");
    assert_eq!(whole.last().expect("there is one").data["status"], "completed");
    let ids: Vec<u64> = whole.iter().map(|it| it.id.parse().expect("a number")).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    let url = api.url(&job.path("/events"));
    let last = whole.last().map(|event| event.id.as_str());
    assert_eq!(Reader::open(&url, None, last).await.err(), Some(204));
}

#[tokio::test]
async fn a_stream_goes_on_when_the_queue_is_back() {
    let mut parts = Parts::on(Database::Sqlite).await;
    let (server, _worker) = (parts.server(), parts.worker("resolve,stage,invoke,act,archive"));
    let go = parts.lender.scratch().join("go");
    let job = waiting_for(&server.api(), &go).await;
    let mut reader = open(&server.api(), &job, None).await;
    let mut seen = until_active(&mut reader).await;
    let nats = parts.nats.as_mut().expect("it is ours");
    nats.kill().await;
    fs::write(&go, "").expect("it is written");
    nats.start_again().await;
    seen.extend(reader.rest().await);
    assert_eq!(seen.last().expect("there is one").data["status"], "completed");
    assert_eq!(seen, open(&server.api(), &job, None).await.rest().await);
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams_and_no_sooner() {
    let parts = Parts::on(Database::Sqlite).await;
    let (server, _worker) = (parts.server(), parts.worker("resolve,stage,invoke,act,archive"));
    let go = parts.lender.scratch().join("go");
    let job = waiting_for(&server.api(), &go).await;
    let mut reader = open(&server.api(), &job, None).await;
    let seen = until_active(&mut reader).await;
    let (ended, ()) = tokio::join!(reader.next(), server.stop());
    assert_eq!(ended, None);
    fs::write(&go, "").expect("it is written");
    let server = parts.server();
    let api = server.api();
    let rest = open(&api, &job, seen.last()).await.rest().await;
    assert_eq!(rest.last().expect("there is one").data["status"], "completed");
    assert_eq!(job.at(api).ends(SOON).await["status"], "completed");
}
