//! Running a job once more.

use jiff::Timestamp;
use serde_json::json;
use streams::id::JobId;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;

use super::harness::Harness;
use super::{AGENTS, JOBS, agent};
use crate::records::tests::job::new_job;
use crate::records::{Job, NewJob};

async fn job(api: &Harness, shown: &serde_json::Value) -> Job {
    let id: JobId = shown["id"].as_str().expect("an id").parse().expect("a job id");
    api.records.jobs().by_id(id).await.expect("records answer").expect("it is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_o4_a_rerun_has_the_same_snapshot_and_deadlines_of_its_own() {
    for api in Harness::start_both().await {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
        let spec = json!({"agent": "calc", "input": "x", "queue_timeout_seconds": 3600});
        let body = json!({"spec": spec, "custom_fields": {"team": "a"}, "description": "nightly"});
        let first = api.post(&format!("{AGENTS}/jobs/execute"), body).await;
        assert_eq!(first.status, 201, "{}", first.body);
        let first = job(&api, &first.body).await;
        // Nothing is resolved anew.
        let gone = api.send("DELETE", &format!("{AGENTS}/agents/calc"), None).await;
        assert_eq!(gone.status, 204);

        let asked = Timestamp::now();
        for (at, name) in
            [(JOBS.to_owned(), None), (format!("{AGENTS}/jobs/execute"), Some("again"))]
        {
            let path = format!("{at}/{}/rerun", first.name);
            let made = match name {
                None => api.send("POST", &path, None).await,
                Some(name) => api.post(&path, json!({"name": name})).await,
            };
            assert_eq!(made.status, 201, "{}", made.body);
            assert_eq!(made.body["rerun_of"], first.id.http());
            let second = job(&api, &made.body).await;
            assert_ne!((second.id, &second.name), (first.id, &first.name));
            assert!(name.is_none_or(|name| name == second.name), "{}", second.name);
            assert_eq!(second.rerun_of, Some(first.id));
            let (mut one, other) = (first.clone(), second);
            let (old, new) = (one.snapshot.as_mut().expect("one"), other.snapshot.expect("one"));
            let limit = new.queue_limit.expect("it has one");
            assert!(limit.at > old.queue_limit.expect("it has one").at && limit.at > asked);
            (old.name, old.queue_limit) = (new.name.clone(), new.queue_limit);
            assert_eq!(*old, new, "the rest is the same");
            assert_eq!(
                (one.description, one.custom_fields, one.agent_ref),
                (other.description, other.custom_fields, other.agent_ref)
            );
            let submitted = subject::fact(Phase::Submitted, "default", other.id);
            let stands = api.broker.last(StreamName::Intake, &submitted).await;
            assert!(stands.expect("the queue answers").is_some());
            assert!(api.get(&format!("{JOBS}/{}", first.name)).await.body["rerun_of"].is_null());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_under_a_key_is_one_job() {
    for api in Harness::start_both().await {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
        let body = json!({"spec": {"agent": "calc", "input": "x"}, "name": "first"});
        api.post(&format!("{AGENTS}/jobs/execute"), body).await.status_is(201);
        let path = format!("{JOBS}/first/rerun");
        let one = api.keyed(&path, "k", json!({})).await;
        let same = api.keyed(&path, "k", json!({})).await;
        assert_eq!((one.status, &one.body), (201, &same.body));
        api.keyed(&path, "k", json!({"name": "other"})).await.status_is(409);
        let wrong = api.post(&path, json!({"title": "x"})).await;
        assert_eq!(wrong.body["detail"][0]["type"], "extra_forbidden", "{}", wrong.body);
        let taken = api.post(&path, json!({"name": "first"})).await;
        assert_eq!(taken.status, 409, "{}", taken.body);
        assert_eq!(api.send("POST", &format!("{JOBS}/nobody/rerun"), None).await.status, 404);

        let refused = NewJob { snapshot: Err("It is refused.".to_owned()), ..new_job("refused") };
        api.records.jobs().admit(refused).await.expect("it is admitted");
        let detail = "Job 'refused' has nothing that could be run once more: It is refused. Submit \
                      a new job.";
        let answer = api.send("POST", &format!("{JOBS}/refused/rerun"), None).await;
        answer.answers(409, json!({"detail": detail}));
    }
}
