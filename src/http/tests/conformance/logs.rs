//! `test_job_logs.py`.
//!
//! Not here: `…_scopes_to_artifact_base_path_when_output_location_set`. Logs are kept with the
//! job, wherever its results go.

use serde_json::{Value, json};
use streams::id::{Attempt, JobId};

use super::{JOBS, execute, get, submit};
use crate::http::tests::harness::Harness;
use crate::http::tests::{archive_log, batch};

/// A job with ten lines, `a` to `j`, and a blank one among them.
async fn with_lines(api: &Harness, name: &str) -> JobId {
    let job = id(&submit(api, name).await);
    let prev = api.publish(&batch(job, 1, 0, &["a", "b", "c", " ", "d", "e"])).await;
    api.publish(&batch(job, 7, prev, &["f", "g", "h", "i", "j"])).await;
    job
}

fn id(job: &Value) -> JobId {
    job["id"].as_str().expect("text").parse().expect("an id")
}

async fn read(api: &Harness, query: &str) -> Value {
    get(api, &format!("run-1/logs{query}")).await
}

fn text(page: &Value) -> String {
    let lines = page["data"].as_array().expect("a list").iter();
    lines.map(|line| line["message"].as_str().expect("text")).collect()
}

fn cursor(page: &Value, key: &str) -> String {
    page[key].as_str().expect("there is another page").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_success() {
    let api = Harness::start().await;
    let job = with_lines(&api, "run-1").await;
    let page = read(&api, "").await;
    assert_eq!((text(&page).as_str(), &page["total"]), ("abcdefghij", &json!(10)));
    let keys: Vec<_> = page.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["data", "total", "next_page", "prev_page"]);
    let line = &page["data"][0];
    let expected = json!({
        "timestamp": "1970-01-01T00:00:00.000000Z", "job": "run-1", "job_step": "execute-agent",
        "job_task": job.task_name(Attempt::FIRST), "message": "a", "n": 1, "stream": "stdout",
    });
    assert_eq!(line, &expected);

    let mut prev = 0;
    for first in [12, 62] {
        prev = api.publish(&batch(job, first, prev, &["x"; 50])).await;
    }
    let page = read(&api, "").await;
    assert_eq!(page["data"].as_array().map(Vec::len), Some(100), "a page has 100 lines");
    assert_eq!(page["total"], 110);
    let by_id = get(&api, &format!("{}/logs", job.http())).await;
    assert_eq!(by_id, page, "by its id, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_with_pagination_params() {
    let api = Harness::start().await;
    let job = with_lines(&api, "run-1").await;
    let first = read(&api, "?limit=4").await;
    let second = format!("?limit=4&page_cursor={}", cursor(&first, "next_page"));
    let third = format!("?limit=4&page_cursor={}", cursor(&read(&api, &second).await, "next_page"));
    let last = read(&api, &third).await;
    assert_eq!((text(&last).as_str(), &last["next_page"]), ("ij", &Value::Null));
    let back = format!("?limit=4&page_cursor={}", cursor(&last, "prev_page"));
    assert_eq!(text(&read(&api, &back).await), "efgh");

    // While the job runs, the last page fills up under the same cursor, and the others stay.
    let prev = api.publish(&batch(job, 12, 0, &["k"])).await;
    let fuller = read(&api, &third).await;
    assert_eq!((text(&fuller).as_str(), &fuller["next_page"]), ("ijk", &Value::Null));
    api.publish(&batch(job, 13, prev, &["l", "m"])).await;
    let full = read(&api, &third).await;
    assert_eq!(text(&full), "ijkl");
    let fourth = format!("?limit=4&page_cursor={}", cursor(&full, "next_page"));
    assert_eq!(text(&read(&api, &fourth).await), "m");
    assert_eq!(text(&read(&api, &second).await), "efgh");
    let past = format!("?limit=4&page_cursor={}", bs58::encode("f:99").into_string());
    let past = read(&api, &past).await;
    assert_eq!((text(&past).as_str(), past["prev_page"].is_string()), ("", true));
}

/// Cursors are for the job's life: they go on meaning the same when the messages are gone and the
/// lines come from the archive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_stay_when_the_log_is_archived() {
    let api = Harness::start().await;
    let job = with_lines(&api, "run-1").await;
    let first = read(&api, "?limit=4").await;
    let next = format!("?limit=4&page_cursor={}", cursor(&first, "next_page"));
    let second = read(&api, &next).await;
    let tail = read(&api, "?tail=3").await;
    let older = format!("?limit=2&page_cursor={}", cursor(&tail, "prev_page"));
    let before_tail = read(&api, &older).await;

    archive_log(&api, job).await;
    assert_eq!(read(&api, "?limit=4").await, first);
    assert_eq!(read(&api, &next).await, second);
    assert_eq!(read(&api, "?tail=3").await, tail);
    assert_eq!(read(&api, &older).await, before_tail);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_with_tail() {
    let api = Harness::start().await;
    with_lines(&api, "run-1").await;
    let tail = read(&api, "?tail=3").await;
    assert_eq!((text(&tail).as_str(), &tail["next_page"]), ("hij", &Value::Null));
    let older = cursor(&tail, "prev_page");
    let rest = read(&api, &format!("?page_cursor={older}")).await;
    assert_eq!((text(&rest).as_str(), &rest["prev_page"]), ("abcdefg", &Value::Null));
    assert_eq!(rest["next_page"], Value::Null, "a window before a tail leads back only");
    let two = read(&api, &format!("?limit=2&page_cursor={older}")).await;
    assert_eq!(text(&two), "fg");
    let more = read(&api, &format!("?limit=2&page_cursor={}", cursor(&two, "prev_page"))).await;
    assert_eq!(text(&more), "de");
    let all = read(&api, "?tail=10000").await;
    assert_eq!((text(&all).as_str(), &all["prev_page"]), ("abcdefghij", &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_rejects_tail_with_limit() {
    let detail = "tail cannot be combined with limit; tail controls the returned log window size.";
    refuses("?tail=3&limit=3", 400, detail).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_rejects_tail_with_page_cursor() {
    let detail = "tail cannot be combined with page_cursor; pass the returned prev_page as \
                  page_cursor without tail.";
    refuses("?tail=3&page_cursor=abc", 400, detail).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_invalid_page_cursor() {
    refuses("?page_cursor=abc", 422, "Invalid page cursor").await;
}

/// Both collections refuse a query.
async fn refuses(query: &str, status: u16, detail: &str) {
    let api = Harness::start().await;
    submit(&api, "run-1").await;
    for at in [JOBS.to_owned(), execute()] {
        let refused = api.get(&format!("{at}/run-1/logs{query}")).await;
        refused.answers(status, json!({"detail": detail}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_job_not_found() {
    let api = Harness::start().await;
    let missing = json!({"detail": "Job 'nope' not found in workspace 'default'."});
    for at in [JOBS.to_owned(), execute()] {
        api.get(&format!("{at}/nope/logs")).await.answers(404, missing.clone());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_page_cursor_filter_mismatch_message() {
    let api = Harness::start().await;
    with_lines(&api, "run-1").await;
    submit(&api, "run-2").await;
    let older = cursor(&read(&api, "?tail=2").await, "prev_page");
    let detail = json!({"detail": "page_cursor does not match the current log filters."});
    for path in [
        format!("run-1/logs?page_cursor={older}&step_id=execute-agent"),
        format!("run-1/logs?page_cursor={older}&step_id=nope"),
        format!("run-2/logs?page_cursor={older}"),
    ] {
        api.get(&format!("{JOBS}/{path}")).await.answers(422, detail.clone());
    }
    let filtered = read(&api, "?tail=2&step_id=execute-agent").await;
    let older = cursor(&filtered, "prev_page");
    let same = format!("?page_cursor={older}&step_id=execute-agent");
    assert_eq!(text(&read(&api, &same).await), "abcdefgh");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_invalid_limit() {
    let api = Harness::start().await;
    submit(&api, "run-1").await;
    for (query, kind) in [
        ("limit=0", "greater_than"),
        ("limit=10001", "less_than_equal"),
        ("limit=x", "int_parsing"),
        ("tail=0", "greater_than"),
        ("tail=10001", "less_than_equal"),
    ] {
        let refused = api.get(&format!("{JOBS}/run-1/logs?{query}")).await;
        assert_eq!((refused.status, &refused.body["detail"][0]["type"]), (422, &json!(kind)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_empty_logs() {
    let api = Harness::start().await;
    submit(&api, "run-1").await;
    let nothing = json!({"data": [], "total": 0, "next_page": null, "prev_page": null});
    assert_eq!(read(&api, "").await, nothing);
    assert_eq!(read(&api, "?page_cursor=").await, nothing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_large_limit() {
    let api = Harness::start().await;
    with_lines(&api, "run-1").await;
    assert_eq!(text(&read(&api, "?limit=1000").await), "abcdefghij");
}

/// Filters narrow the generic collection's view; the execute collection has none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_logs_by_step_task_and_attempt() {
    let api = Harness::start().await;
    let job = with_lines(&api, "run-1").await;
    let task = job.task_name(Attempt::FIRST);
    let attempt = job.attempt_id(Attempt::FIRST);
    for (query, expected) in [
        ("step_id=execute-agent".to_owned(), "abcdefghij"),
        (format!("task_id={task}"), "abcdefghij"),
        (format!("attempt_id={attempt}"), "abcdefghij"),
        ("step_id=nope".to_owned(), ""),
        ("task_id=nope".to_owned(), ""),
        ("attempt_id=0".to_owned(), ""),
    ] {
        assert_eq!(text(&read(&api, &format!("?{query}")).await), expected, "{query}");
        let typed = api.get(&format!("{}/run-1/logs?{query}", execute())).await;
        assert_eq!(text(&typed.body), "abcdefghij", "{query}");
    }
}
