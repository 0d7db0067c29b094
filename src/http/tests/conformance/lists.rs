//! Lists of jobs, after the reference's `test_jobs_api.py` and `test_job_spec_filter.py`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::filters::filtered;
use super::super::harness::Harness;
use super::super::{AGENTS, JOBS, agent};
use crate::records::NewJob;
use crate::records::tests::job as story;

/// Admits a job with this request in its spec, as of this second.
async fn make(api: &Harness, name: &str, request: Value, at: i64) -> String {
    let mut snapshot = story::snapshot(name);
    snapshot.spec.request = request;
    let created_at = story::second(at);
    let new = NewJob { snapshot: Ok(snapshot), created_at, ..story::new_job(name) };
    let id = new.id.http();
    api.records.jobs().admit(new).await.expect("it is admitted");
    id
}

async fn list(api: &Harness, path: &str) -> Value {
    let list = api.get(path).await;
    assert_eq!(list.status, 200, "{path}: {}", list.body);
    list.body
}

fn field(list: &Value, key: &str) -> Vec<String> {
    let items = list["data"].as_array().expect("a list").iter();
    items.map(|item| item[key].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_paging() {
    for api in Harness::start_both().await {
        let mut made = BTreeSet::new();
        for n in 0..15 {
            made.insert(make(&api, &format!("job-{n}"), json!({}), n).await);
        }
        for (size, pages) in [(10, 2), (5, 3)] {
            let mut seen = Vec::new();
            for page in 1..=pages {
                let found = list(&api, &format!("{JOBS}?page={page}&page_size={size}")).await;
                let ids = field(&found, "id");
                let mut pagination = found["pagination"].clone();
                pagination.as_object_mut().expect("an object").remove("next_cursor");
                let expected = json!({
                    "page": page, "page_size": size, "current_page_size": ids.len(),
                    "total_pages": pages, "total_results": 15,
                });
                assert_eq!(pagination, expected);
                seen.extend(ids);
            }
            assert_eq!(seen.len(), 15);
            assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), made);
        }
        let beyond = list(&api, &format!("{JOBS}?page=10")).await;
        assert_eq!((&beyond["data"], &beyond["pagination"]["page"]), (&json!([]), &json!(10)));
        let none = list(&api, &format!("{JOBS}?filter[status]=FOOBAR")).await;
        assert_eq!(none["data"], json!([]));
        assert_eq!(api.get(&format!("{JOBS}?filter[bogus]=x")).await.status, 400);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hello_world_jobs_list() {
    let api = Harness::start().await;
    let spec = json!({"agent": {"config_format": "nemo-agents-spec-v1",
                                "config": agent("hello")["config"]}, "input": "hello"});
    let execute = format!("{AGENTS}/jobs/execute");
    let mut made = Vec::new();
    for _ in 0..2 {
        let job = api.post(&execute, json!({"spec": spec})).await;
        assert_eq!(job.status, 201, "{}", job.body);
        made.insert(0, job.body["name"].as_str().expect("a name").to_owned());
    }
    let found = list(&api, JOBS).await;
    assert_eq!(field(&found, "name"), made, "the newest is the first");
    let job = &found["data"][0];
    assert_eq!(job["source"], "nemo-agents-plugin-execute");
    // 20 characters of the source and 8 of the id.
    assert!(made[0].starts_with("nemo-agents-plugin-e-"), "{}", made[0]);
    assert_eq!(job["spec"]["request"]["input"], "hello");
    assert_eq!(job["platform_spec"]["steps"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_list_filter_with_datetime() {
    for api in Harness::start_both().await {
        for n in 0..3 {
            make(&api, &format!("job-{n}"), json!({}), n).await;
        }
        let names = async |filter: Value| {
            let mut names = field(&list(&api, &filtered(JOBS, &filter.to_string())).await, "name");
            names.sort();
            names
        };
        let at = |n: i64| story::second(n).to_string();
        let middle = at(1);
        assert_eq!(names(json!({"created_at": {"$gte": middle}})).await, ["job-1", "job-2"]);
        assert_eq!(names(json!({"created_at": {"$lte": middle}})).await, ["job-0", "job-1"]);
        let both = json!({"created_at": {"$gte": middle, "$lte": middle}});
        assert_eq!(names(both).await, ["job-1"]);
        let without_zone = middle.trim_end_matches('Z');
        assert_eq!(names(json!({"created_at": {"$gt": without_zone}})).await, ["job-2"]);
        assert_eq!(names(json!({"created_at": without_zone})).await, ["job-1"]);
        // The same instant, as a clock elsewhere shows it.
        let elsewhere = format!("{}+02:00", at(1 + 2 * 3600).trim_end_matches('Z'));
        assert_eq!(names(json!({"created_at": {"$lt": elsewhere}})).await, ["job-0"]);
        assert_eq!(names(json!({"created_at": {"$gte": "2000-01-01"}})).await.len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_on_a_nested_spec_path() {
    for api in Harness::start_both().await {
        make(&api, "csv", json!({"target": {"format": "csv"}}), 0).await;
        make(&api, "json", json!({"target": {"format": "json"}}), 0).await;
        let filter = r#"{"spec.request.target.format": "csv"}"#;
        let found = list(&api, &filtered(JOBS, filter)).await;
        assert_eq!(field(&found, "name"), ["csv"]);
        assert_eq!(found["filter"], json!({"data.spec.request.target.format": {"$eq": "csv"}}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absent_spec_path_matches_only_eq_null() {
    for api in Harness::start_both().await {
        make(&api, "with", json!({"target": "a"}), 0).await;
        make(&api, "without", json!({}), 0).await;
        let names = async |test: Value| {
            let filter = json!({"spec.request.target": test}).to_string();
            field(&list(&api, &filtered(JOBS, &filter)).await, "name")
        };
        assert_eq!(names(json!({"$eq": null})).await, ["without"]);
        assert_eq!(names(json!({"$nin": ["b"]})).await, ["with"]);
        for test in [json!({"$in": ["b"]}), json!({"$gt": "b"}), json!({"$nin": ["a"]})] {
            assert_eq!(names(test).await, Vec::<String>::new());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn excluding_agents_keeps_model_and_offline_jobs() {
    for api in Harness::start_both().await {
        make(&api, "excluded", json!({"target": {"agent": "calc"}}), 0).await;
        make(&api, "other", json!({"target": {"agent": "search"}}), 0).await;
        make(&api, "model", json!({"target": {"model": "m"}}), 0).await;
        make(&api, "offline", json!({"target": null}), 0).await;
        let path = "spec.request.target.agent";
        let filter = json!({"$and": [
            {"source": "nemo-agents-plugin-execute"},
            {"$or": [{path: {"$nin": ["calc"]}}, {path: {"$eq": null}}]},
        ]});
        let mut names = field(&list(&api, &filtered(JOBS, &filter.to_string())).await, "name");
        names.sort();
        assert_eq!(names, ["model", "offline", "other"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_path_outside_a_declared_namespace() {
    let api = Harness::start().await;
    let refused = api.get(&filtered(JOBS, r#"{"platform_spec.steps": 1}"#)).await;
    assert_eq!(refused.status, 400);
    let detail = refused.body["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("Unknown filter field 'platform_spec.steps'."), "{detail}");
}
