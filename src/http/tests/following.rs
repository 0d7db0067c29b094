//! Following a log by the numbers of its lines, and reading only the end of a long one.

use serde_json::{Value, json};
use streams::id::JobId;
use streams::log::Lines;
use streams::snapshot::ObjectRef;
use workers::store::key;

use super::harness::Harness;
use super::{AGENTS, JOBS, agent, archive_log, batch};

async fn job(api: &Harness) -> (JobId, String) {
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let spec = json!({"spec": {"agent": "calc", "input": ""}, "name": "run-1"});
    let made = api.post(&format!("{AGENTS}/jobs/execute"), spec).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.body["id"].as_str().expect("text").parse().expect("an id");
    (id, format!("{JOBS}/run-1/logs"))
}

fn numbers(page: &Value) -> Vec<u64> {
    let lines = page["data"].as_array().expect("a list").iter();
    lines.map(|line| line["n"].as_u64().expect("a number")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_after_a_line_is_found_by_its_number_live_and_archived() {
    let api = Harness::start().await;
    let (job, logs) = job(&api).await;
    // The second batch says how many of its lines are blank, as new ones do.
    let prev = api.publish(&batch(job, 1, 0, &["a", " ", "c"])).await;
    let mut second = batch(job, 4, prev, &["d", "", "", "g"]);
    second.blank = Some(2);
    let prev = api.publish(&second).await;
    api.publish(&batch(job, 8, prev, &["", "i"])).await;
    let checks = async || {
        let page = async |query: &str| api.get(&format!("{logs}?{query}")).await.body;
        for (after, expected) in [
            (1_u32, &[3_u64, 4, 7, 9][..]),
            (2, &[3, 4, 7, 9]),
            (4, &[7, 9]),
            (6, &[7, 9]),
            (7, &[9]),
            (9, &[]),
            (4_000_000_000_u32, &[]),
        ] {
            let found = page(&format!("after={after}")).await;
            assert_eq!((numbers(&found).as_slice(), &found["total"]), (expected, &json!(5)));
            assert_eq!(found["next_page"], Value::Null);
        }
        let two = page("after=1&limit=2").await;
        assert_eq!(numbers(&two), [3, 4]);
        let next = two["next_page"].as_str().expect("there are more");
        assert_eq!(numbers(&page(&format!("page_cursor={next}")).await), [7, 9]);
    };
    checks().await;
    for query in ["after=1&tail=1", &format!("after=1&page_cursor={}", "x")] {
        assert_eq!(api.get(&format!("{logs}?{query}")).await.status, 400, "{query}");
    }
    assert_eq!(api.get(&format!("{logs}?after=-1")).await.status, 422);

    archive_log(&api, job).await;
    checks().await;
}

/// Only its last chunk is in the store: whoever asked for another would fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_log_of_a_million_lines_is_read_without_the_rest() {
    let api = Harness::start().await;
    let (job, logs) = job(&api).await;
    let (chunks, lines) = (20, 50_000_u64);
    let mut prev = 0;
    for first in (0..chunks).map(|chunk| chunk * lines + 1) {
        let mut stored = batch(job, first, prev, &[]);
        (stored.count, stored.blank) = (lines, Some(0));
        let key = key::log_chunk("default", job, stored.attempt, first, 0);
        stored.lines = Lines::Stored(if first + lines > chunks * lines {
            let line = |n| {
                let rest = r#""at":"1970-01-01T00:00:00Z","stream":"stdout","text":"x"}"#;
                format!("{{\"n\":{n},{rest}\n")
            };
            let text = String::from_iter((first..first + lines).map(line));
            api.store.put(&key, text.into()).await.expect("it is stored")
        } else {
            ObjectRef { key, size: 1, sha256: "0".repeat(64) }
        });
        prev = api.publish(&stored).await;
    }
    let page = api.get(&format!("{logs}?tail=3")).await.body;
    assert_eq!(
        (numbers(&page), &page["total"]),
        (vec![999_998, 999_999, 1_000_000], &json!(1_000_000))
    );
    let page = api.get(&format!("{logs}?after=999999")).await.body;
    assert_eq!(numbers(&page), [1_000_000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_came_while_nobody_looked_are_in_the_archive() {
    let api = Harness::start().await;
    let (job, logs) = job(&api).await;
    let prev = api.publish(&batch(job, 1, 0, &["a", "b"])).await;
    let first = api.get(&format!("{logs}?limit=2")).await.body;
    assert_eq!(numbers(&first), [1, 2]);
    assert_eq!(numbers(&api.get(&format!("{logs}?after=2")).await.body), [0_u64; 0]);
    api.publish(&batch(job, 3, prev, &["c", "d"])).await;
    archive_log(&api, job).await;
    let rest = api.get(&format!("{logs}?after=2")).await.body;
    assert_eq!((numbers(&rest), &rest["total"]), (vec![3, 4], &json!(4)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_the_store_has_lost_keep_no_log_from_being_archived() {
    let api = Harness::start().await;
    let (job, logs) = job(&api).await;
    let prev = api.publish(&batch(job, 1, 0, &["a", "b"])).await;
    let mut lost = batch(job, 3, prev, &[]);
    let key = key::log_chunk("default", job, lost.attempt, 3, 0);
    lost.count = 40;
    lost.lines = Lines::Stored(ObjectRef { key: key.clone(), size: 1, sha256: "0".repeat(64) });
    let prev = api.publish(&lost).await;
    api.publish(&batch(job, 43, prev, &["c"])).await;
    let reader = workers::logs::LogReader::new(api.broker.clone());
    let packed = reader.archive(&api.store, "default", job).await.expect("it is packed");
    assert!(packed.is_some());
    crate::removal::purge(&*api.broker, "default", job).await.expect("the messages go");
    let page = api.get(&logs).await.body;
    assert_eq!(numbers(&page), [1, 2, 3, 43]);
    let told = format!("40 lines are lost: {key} is not in the object store.");
    assert_eq!(page["data"][2]["message"], json!(told));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_long_lines_is_short_and_goes_on() {
    let api = Harness::start().await;
    let (job, logs) = job(&api).await;
    let text = "x".repeat(500_000);
    let mut prev = 0;
    for first in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] {
        prev = api.publish(&batch(job, first, prev, &[&text])).await;
    }
    let checks = async || {
        let page = async |query: &str| api.get(&format!("{logs}?{query}")).await.body;
        let start = page("limit=10").await;
        assert_eq!(numbers(&start), [1, 2, 3, 4, 5, 6, 7, 8]);
        let next = start["next_page"].as_str().expect("there are more");
        assert_eq!(numbers(&page(&format!("page_cursor={next}")).await), [9, 10]);
        let end = page("tail=10").await;
        assert_eq!(numbers(&end), [3, 4, 5, 6, 7, 8, 9, 10]);
        let prev = end["prev_page"].as_str().expect("there are more");
        assert_eq!(numbers(&page(&format!("page_cursor={prev}")).await), [1, 2]);
    };
    checks().await;
    archive_log(&api, job).await;
    checks().await;
}
