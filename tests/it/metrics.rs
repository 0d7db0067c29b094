//! Metrics: whatever callers and jobs are called, the labels have values of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::harness::{Api, Database, Parts, Platform, eventually};

const LATER: Duration = Duration::from_secs(60);

/// The names of the figures, and the values that each label has.
type Figures = (BTreeMap<String, f64>, BTreeMap<String, BTreeSet<String>>);

async fn figures(api: &Api) -> Figures {
    let text = String::from_utf8(api.bytes("/metrics").await).expect("it is text");
    let (mut figures, mut labels) = (BTreeMap::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        figures.insert(series.to_owned(), value.parse().expect("a number"));
        let Some((_, pairs)) = series.trim_end_matches('}').split_once('{') else { continue };
        for pair in pairs.split("\",") {
            let (label, value) = pair.split_once("=\"").expect("a label");
            let value = value.trim_end_matches('"').to_owned();
            labels.entry(label.to_owned()).or_default().insert(value);
        }
    }
    (figures, labels)
}

/// Everything that somebody can name is named oddly.
#[tokio::test]
async fn label_values_come_from_closed_sets() {
    let platform = Platform::start().await;
    let api = platform.api();
    let odd = "zz-odd-name";
    api.ask(Method::POST, "/apis/entities/v2/workspaces", Some(json!({"name": odd}))).await;
    for job in [
        api.script("echo done", json!({})).await,
        api.script("exit 3", json!({})).await,
        api.script("sleep 60", json!({"timeout_seconds": 1})).await,
    ] {
        job.ends(LATER).await;
    }
    for (method, path) in [
        (Method::GET, format!("/apis/jobs/v2/workspaces/{odd}/jobs/{odd}")),
        (Method::GET, format!("/apis/jobs/v2/workspaces/{odd}/jobs")),
        (Method::GET, format!("/{odd}/%22%7D%0A/{odd}")),
        (Method::from_bytes(b"ZZODD").expect("a method"), "/status".to_owned()),
        (Method::DELETE, format!("/apis/files/v2/workspaces/{odd}/filesets/{odd}/-/{odd}/{odd}")),
        (Method::PUT, format!("/status?{odd}={odd}")),
    ] {
        api.ask(method, &path, None).await;
    }
    let counted = || async {
        let (figures, _) = figures(&api).await;
        let ended = |(series, _): &(&String, &f64)| series.starts_with("errand_jobs_ended_total");
        (figures.iter().filter(ended).map(|(_, n)| n).sum::<f64>() >= 3.0).then_some(())
    };
    eventually("the ends are counted", LATER, counted).await;

    let document = api.get("/openapi.json").await;
    let paths = document["paths"].as_object().expect("an object").keys();
    let routes = paths.cloned().chain(["none".to_owned()]).collect();
    let words =
        |words: &str| -> BTreeSet<String> { words.split_whitespace().map(str::to_owned).collect() };
    let codes = streams::code::Code::ALL.iter().map(|code| code.as_str().to_owned());
    let closed: BTreeMap<&str, BTreeSet<String>> = [
        ("version", words(env!("CARGO_PKG_VERSION"))),
        ("revision", words(option_env!("ERRAND_REVISION").unwrap_or("dev"))),
        ("phase", words("submitted resolved staged invoked acted archived")),
        ("step", words("resolve stage invoke act archive")),
        ("delivery", words("first again")),
        ("ended", words("done again waits dropped")),
        ("method", words("GET HEAD POST PUT PATCH DELETE OPTIONS other")),
        ("route", routes),
        ("code", codes.chain(["none".to_owned()]).collect()),
        ("state", words("waiting held running")),
    ]
    .into();
    let statuses = words("1xx 2xx 3xx 4xx 5xx completed cancelled error");
    let (series, labels) = figures(&api).await;
    for (label, values) in &labels {
        let values: BTreeSet<_> = values.iter().map(|it| it.replace("{*", "{")).collect();
        match label.as_str() {
            // Bounds of a histogram's buckets.
            "le" => assert!(values.len() < 20, "{values:?}"),
            "status" => assert!(values.is_subset(&statuses), "{values:?}"),
            other => {
                let closed = closed.get(other).unwrap_or_else(|| panic!("label {other}"));
                assert!(values.is_subset(closed), "{other}: {:?}", &values - closed);
            }
        }
    }
    assert!(!series.keys().any(|it| it.contains("odd")), "{series:?}");
    for wanted in [
        r#"errand_jobs_ended_total{status="completed",code="none"}"#,
        r#"errand_jobs_ended_total{status="error",code="agent_failed"}"#,
        r#"errand_jobs_ended_total{status="error",code="timeout"}"#,
        r#"errand_step_seconds_count{step="invoke",ended="done"}"#,
        r#"errand_deliveries_total{step="archive",delivery="first"}"#,
        r#"errand_http_requests_total{method="other",route="/status",status="4xx"}"#,
        r#"errand_queue_jobs{state="waiting"}"#,
    ] {
        assert!(series.contains_key(wanted), "{wanted} is not in {series:#?}");
    }
    assert_eq!(series["errand_slots"], 2.0);
    assert_eq!(series["errand_agents_running"], 0.0);
}

#[tokio::test]
async fn a_worker_shows_its_own_figures_where_it_is_told_to() {
    let parts = Parts::on(Database::Sqlite).await;
    let [port] = crate::harness::free_ports();
    let address = format!("127.0.0.1:{port}");
    let server = parts.server();
    let all = "resolve,stage,invoke,act,archive";
    let _worker = parts.worker_at("here", all, &[("worker.metrics_listen", &address)]);
    let job = server.api().script("echo done", json!({})).await;
    assert_eq!(job.ends(LATER).await["status"], "completed");
    let own = Api::new(&format!("http://{address}"));
    let done = r#"errand_step_seconds_count{step="archive",ended="done"}"#;
    // The fact is there a moment before the step is done.
    let counted = || async {
        let (series, _) = figures(&own).await;
        series.contains_key(done).then_some(series)
    };
    let series = eventually("the step is counted", LATER, counted).await;
    assert_eq!(series["errand_slots"], 2.0);
    assert!(!series.keys().any(|it| it.starts_with("errand_queue")), "that is the server's");
    let (series, _) = figures(&server.api()).await;
    assert!(!series.contains_key(done), "that is the worker's");
}
