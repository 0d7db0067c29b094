//! Pages by cursor, on every list that has them, on both databases.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::harness::Harness;
use super::{AGENTS, FILESETS, JOBS, SECRETS, agent};
use crate::records::NewJob;
use crate::records::tests::job as story;

const EXECUTE: &str = "/apis/agents/v2/workspaces/default/jobs/execute";
const WORKSPACES: &str = "/apis/entities/v2/workspaces";

/// The ids of a page, names where there are none, and where the next one begins.
async fn page(api: &Harness, path: &str) -> (Vec<String>, Option<String>) {
    let page = api.get(path).await;
    assert_eq!(page.status, 200, "{path}: {}", page.body);
    let items = page.body["data"].as_array().expect("a list").iter();
    let id = |item: &Value| item["id"].as_str().or(item["name"].as_str()).map(str::to_owned);
    let ids = items.map(|item| id(item).expect("an id or a name")).collect();
    let pagination = page.body["pagination"].as_object().expect("an object");
    let next = pagination.get("next_cursor");
    (ids, next.map(|next| next.as_str().expect("a word").to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_list_can_be_read_by_cursor() {
    for api in Harness::start_both().await {
        for n in 0..5 {
            api.records.jobs().admit(story::new_job(&format!("job-{n}"))).await.expect("admitted");
            let name = format!("thing-{n}");
            api.post(&format!("{AGENTS}/agents"), agent(&name)).await.status_is(201);
            api.post(FILESETS, json!({"name": name})).await.status_is(200);
            api.post(WORKSPACES, json!({"name": name})).await.status_is(201);
            api.post(SECRETS, json!({"name": name, "value": "x"})).await.status_is(201);
        }
        let agents = format!("{AGENTS}/agents");
        let steps = format!("{JOBS}/-/steps");
        for list in [JOBS, EXECUTE, &agents, FILESETS, WORKSPACES] {
            for sort in ["-created_at", "created_at", "updated_at"] {
                by_cursor(&api, list, &format!("sort={sort}&")).await;
            }
        }
        for list in [&agents, FILESETS, WORKSPACES] {
            by_cursor(&api, list, "sort=-name&").await;
        }
        for list in [&steps, SECRETS, &agents] {
            by_cursor(&api, list, "").await;
        }
        for list in [SECRETS, &agents] {
            // What they cannot be sorted by is ignored.
            by_cursor(&api, list, "sort=source&").await;
        }
        refused_cursors(&api).await;
    }
}

/// Cursors and numbers lead through the same items in the same order.
async fn by_cursor(api: &Harness, list: &str, sort: &str) {
    let (expected, next) = page(api, &format!("{list}?{sort}page_size=100")).await;
    assert_eq!(next, None, "{list}: there is no more");
    let mut seen = Vec::new();
    let mut path = format!("{list}?{sort}page_size=2");
    loop {
        let (ids, next) = page(api, &path).await;
        seen.extend(ids);
        let Some(next) = next.filter(|_| seen.len() < expected.len()) else { break };
        path = format!("{list}?{sort}page_size=2&page_cursor={next}");
    }
    assert_eq!(seen, expected, "{list} {sort}");
}

async fn refused_cursors(api: &Harness) {
    let (_, next) = page(api, &format!("{JOBS}?page_size=2")).await;
    let next = next.expect("there is more");
    let refuses = async |query: &str, expected: &str| {
        let refused = api.get(&format!("{JOBS}?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.body);
        assert!(refused.body["detail"].to_string().contains(expected), "{}", refused.body);
    };
    refuses("page_cursor=junk", "Invalid page cursor").await;
    refuses("page_cursor=", "Invalid page cursor").await;
    refuses(&format!("page_cursor={next}x"), "Invalid page cursor").await;
    refuses(&format!("sort=created_at&page_cursor={next}"), "sort=-created_at").await;
    refuses(&format!("page=2&page_cursor={next}"), "cannot be combined with page").await;
    let first = api.get(&format!("{JOBS}?page=1&page_cursor={next}")).await;
    assert_eq!(first.status, 200, "clients may always send the first page");
}

/// FC-J1, as a caller sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_j1_submissions_while_paging() {
    for api in Harness::start_both().await {
        let make = async |name: String, at: i64| {
            let new = NewJob { created_at: story::second(at), ..story::new_job(&name) };
            let id = new.id.http();
            api.records.jobs().admit(new).await.expect("it is admitted");
            id
        };
        let mut originals = BTreeSet::new();
        for n in 0..50 {
            originals.insert(make(format!("original-{n}"), 0).await);
        }
        let mut seen = Vec::new();
        let mut path = format!("{EXECUTE}?page_size=10");
        for round in 0.. {
            let (ids, next) = page(&api, &path).await;
            seen.extend(ids);
            for n in 0..5 {
                make(format!("late-{round}-{n}"), n % 2).await;
            }
            let Some(next) = next.filter(|_| round < 50) else { break };
            path = format!("{EXECUTE}?page_size=10&page_cursor={next}");
        }
        let unique: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!(unique.len(), seen.len(), "nothing comes twice");
        assert!(originals.is_subset(&unique), "nothing is missed");
    }
}

/// More than is read at once is sent in parts, and reads like any other list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_large_jobs_is_sent_in_parts() {
    for api in Harness::start_both().await {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
        let input = |n: usize| "x".repeat(2_500_000 + n);
        for n in 0..5 {
            let spec = json!({"agent": "calc", "input": input(n)});
            let body = json!({"spec": spec, "name": format!("large-{n}")});
            api.post(EXECUTE, body).await.status_is(201);
        }
        let steps = format!("{JOBS}/-/steps");
        for list in [EXECUTE, JOBS, &steps] {
            let found = api.get(&format!("{list}?sort=-created_at&page_size=4")).await;
            assert_eq!(found.status, 200);
            assert_eq!(found.headers["content-type"], "application/json");
            let alone = async |page: u32| {
                let path = format!("{list}?sort=-created_at&page_size=1&page={page}");
                api.get(&path).await.body["data"][0].clone()
            };
            let alone = [alone(1).await, alone(2).await, alone(3).await, alone(4).await];
            assert!(found.body["data"] == json!(alone), "{list}");
            let pagination = &found.body["pagination"];
            assert_eq!(pagination["current_page_size"], 4, "{pagination}");
            assert_eq!(pagination["total_results"], 5, "{pagination}");
            assert!(pagination["next_cursor"].is_string(), "{pagination}");
            assert_eq!(found.body["sort"], "-created_at");
        }
        let filtered = api.get(&format!("{JOBS}?filter[name]=large-3")).await.body;
        assert_eq!(filtered["filter"]["name"], json!({"$eq": "large-3"}));
        let newest = api.get(&format!("{EXECUTE}?sort=-created_at")).await.body;
        assert!(newest["data"][0].to_string().contains(&input(4)));
    }
}
