//! FC-E: logs that are missing, out of order, too large, or another when they are archived.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use streams::broker::Broker as _;
use streams::subject;
use streams::topology::StreamName;

use crate::harness::{Api, Job, Options, Platform, eventually};

const SOON: Duration = Duration::from_secs(60);

/// All lines of a job's log as the API has them, fetched in pages of so many.
async fn pages(api: &Api, job: &str, limit: u32) -> Vec<Value> {
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{job}/logs?limit={limit}");
    let (mut lines, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{path}{cursor}")).await;
        lines.extend(page["data"].as_array().expect("a list").clone());
        match page["next_page"].as_str() {
            Some(next) => cursor = format!("&page_cursor={next}"),
            None => return lines,
        }
    }
}

#[tokio::test]
async fn case_e4_a_line_of_megabytes_is_cut_visibly_and_kept_whole_in_the_results() {
    let platform = Platform::start().await;
    let script = "head -c 6000000 /dev/zero | tr '\\0' x; echo; echo END";
    let job = platform.api().script(script, json!({})).await;
    let record = job.ends(SOON).await;
    assert_eq!(record["status"], "completed", "{record}");
    let log = job.log().await;
    let cut = log.iter().find(|line| line.starts_with("xxx")).expect("the line is there");
    assert!(cut.ends_with(" [line cut: it has 6000000 bytes]"), "{} bytes", cut.len());
    assert!(cut.len() < 20_000, "{} bytes", cut.len());
    assert!(log.contains(&"END".to_owned()));
    let whole = fs::metadata(job.directory("output_artifacts").await.path().join("stdout.txt"));
    assert_eq!(whole.expect("it is kept").len(), 6_000_005);
}

/// A platform that keeps the facts and the log messages of a job for a second after its end.
async fn forgetful() -> Platform {
    let retention = ("ERRAND__RETENTION__FINISHED_SECONDS".to_owned(), "1".to_owned());
    Platform::with(Options { env: vec![retention], ..Options::default() }).await
}

/// Waits until the lines of a job are in its archive only.
async fn is_archived(platform: &Platform, job: &Job) {
    let broker = platform.broker().await;
    let lines = subject::logs("default", job.id);
    eventually("the messages are gone", Duration::from_secs(60), || async {
        broker.last(StreamName::Logs, &lines).await.expect("nats answers").is_none().then_some(())
    })
    .await;
}

/// Byte for byte, over every change of where the lines are.
#[tokio::test]
async fn a_log_reads_the_same_live_ended_and_archived() {
    let platform = forgetful().await;
    let api = platform.api();
    let go = platform.scratch().join("go");
    let script = format!(
        "seq 1 40; echo; printf '\\377\\000bin\\r\\n'; printf 'a\\rb\\tc\\n' >&2; echo '   '; \
         head -c 20000 /dev/zero | tr '\\0' y; echo; echo half-way; \
         while [ ! -e {} ]; do sleep 0.1; done; seq 41 60; printf 'no end'",
        go.display()
    );
    let job = api.script(&script, json!({})).await;
    let said = |lines: &[Value], text: &str| lines.iter().any(|line| line["message"] == text);
    let live = eventually("half of it is said", SOON, || async {
        let lines = pages(&api, &job.name, 7).await;
        said(&lines, "half-way").then_some(lines)
    });
    let live = live.await;
    job.reaches("active", SOON).await;
    fs::write(&go, "").expect("a file");
    job.ends(SOON).await;
    let ended = pages(&api, &job.name, 7).await;
    assert!(said(&ended, "no end"), "the log is complete when the status is terminal");
    assert_eq!(ended[..live.len()], live);
    let numbers: Vec<_> = ended.iter().filter_map(|line| line["n"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(ended.iter().all(|line| line["timestamp"].is_string() && line["stream"].is_string()));

    is_archived(&platform, &job).await;
    assert_eq!(pages(&api, &job.name, 7).await, ended);
    let last = ended[ended.len() - 3]["n"].as_u64().expect("a number");
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}/logs?after={last}", job.name);
    assert_eq!(api.get(&path).await["data"], json!(ended[ended.len() - 2..]));
}

#[tokio::test]
async fn a_long_log_is_read_from_its_archive_as_it_was_before() {
    let platform = forgetful().await;
    let api = platform.api();
    // Some 6 MB as JSON lines, which are several frames.
    let job = api.script("seq -f 'line %g of a log that is long' 1 50000", json!({})).await;
    job.ends(SOON).await;
    let before = pages(&api, &job.name, 1000).await;
    let n = |line: &Value| line["n"].as_u64().expect("a number");
    let said = before.iter().filter_map(|line| line["message"].as_str()?.strip_prefix("line "));
    let expected = (1..=50_000).map(|number| format!("{number} of a log that is long"));
    assert!(said.eq(expected), "every line is there, once and in order");
    is_archived(&platform, &job).await;
    let after = pages(&api, &job.name, 1000).await;
    assert!(after == before, "{} lines of {}", after.len(), before.len());
    let path = format!("/apis/jobs/v2/workspaces/default/jobs/{}/logs", job.name);
    for (seen, line) in before.iter().enumerate().step_by(4_999) {
        let page = api.get(&format!("{path}?limit=3&after={}", n(line))).await;
        let expected = &before[seen + 1..before.len().min(seen + 4)];
        assert_eq!(page["data"], json!(expected), "above {}", n(line));
    }
    let last = before.last().expect("there are some");
    assert_eq!(api.get(&format!("{path}?after={}", n(last))).await["data"], json!([]));
}
