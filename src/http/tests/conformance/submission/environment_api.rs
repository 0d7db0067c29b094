//! The first half of D: the collections of environments and specs. All of their verbs are tested
//! in `environments`, beside this folder.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compute_spec_is_created_once_and_missing_ones_are_404() {
    let api = Harness::start().await;
    let path = format!("{AGENTS}/compute-specs");
    let small = json!({"name": "small", "resources": {"limits": {"cpu": "2"}}});
    api.post(&path, small.clone()).await.status_is(201);
    api.post(&path, small).await.status_is(409);
    api.get(&format!("{path}/missing")).await.status_is(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environment_spec_is_created_and_deleted() {
    let api = Harness::start().await;
    keep(&api, "environment-specs", json!({"name": "spec", "env": {"A": "1"}})).await;
    let path = format!("{AGENTS}/environment-specs/spec");
    api.send("DELETE", &path, None).await.status_is(204);
    api.get(&path).await.status_is(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environment_is_created_with_refs_and_inline() {
    let api = Harness::start().await;
    let path = format!("{AGENTS}/environments");
    let refs = json!({"name": "refs", "environment_spec": "spec", "compute_spec": "default/small"});
    keep(&api, "environments", refs.clone()).await;
    let inline = json!({"name": "inline", "environment_spec": {"env": {"A": "1"}}});
    keep(&api, "environments", inline).await;
    let found = api.get(&format!("{path}/refs")).await.body;
    assert_eq!(found["environment_spec"], refs["environment_spec"]);
    assert_eq!(found["compute_spec"], refs["compute_spec"]);
    let found = api.get(&format!("{path}/inline")).await.body;
    assert_eq!(found["environment_spec"]["env"], json!({"A": "1"}));
    assert_eq!(found["environment_spec"]["provider"], "local");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environments_are_listed_in_the_envelope() {
    let api = Harness::start().await;
    keep(&api, "environments", json!({"name": "one"})).await;
    let listed = api.get(&format!("{AGENTS}/environments?page_size=1")).await.body;
    let keys: Vec<_> = listed.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["data", "pagination", "sort", "filter"]);
    assert_eq!((&listed["pagination"]["page_size"], &listed["filter"]), (&json!(1), &json!({})));
}
