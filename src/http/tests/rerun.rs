//! Running a job once more.

use jiff::Timestamp;
use serde_json::json;
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::Source;
use streams::subject;
use streams::topology::StreamName;

use super::harness::Harness;
use super::{AGENTS, JOBS, SECRETS, agent};
use crate::records::tests::job::{admit, new_job, story};
use crate::records::{Job, NewJob, News};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_u1_the_snapshot_stays_and_the_latest_is_looked_up_anew() {
    for api in Harness::start_both().await {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
        let spec = json!({
            "agent": "calc", "input": "one", "timeout_seconds": 7, "expect_files": ["a/*.md"],
        });
        let body = json!({"spec": spec, "name": "first", "custom_fields": {"team": "a"}});
        api.post(&format!("{AGENTS}/jobs/execute"), body).await.status_is(201);
        let gone = api.send("DELETE", &format!("{AGENTS}/agents/calc"), None).await;
        assert_eq!(gone.status, 204);
        let path = format!("{JOBS}/first/rerun");
        let latest = api.post(&path, json!({"latest": true})).await;
        assert_eq!(latest.status, 422, "{}", latest.body);
        assert!(latest.body["detail"].to_string().contains("Agent 'calc' not found."));
        let mut edited = agent("calc");
        edited["config"]["harnesses"]["echo"]["settings"]["command"] = json!(["false"]);
        api.post(&format!("{AGENTS}/agents"), edited).await.status_is(201);

        let command = "/spec/agent/config/harnesses/echo/settings/command";
        let mut names = Vec::new();
        for (asked, wanted, input) in [
            (json!({}), "true", "one"),
            (json!({"latest": false, "input": "two"}), "true", "two"),
            (json!({"latest": true}), "false", "one"),
            (json!({"latest": true, "input": "two"}), "false", "two"),
        ] {
            let made = api.post(&path, asked.clone()).await;
            assert_eq!(made.status, 201, "{asked}: {}", made.body);
            assert_eq!(made.body.pointer(command), Some(&json!([wanted])), "{asked}");
            let second = job(&api, &made.body).await;
            let snapshot = second.snapshot.expect("it has one");
            assert_eq!((snapshot.input.as_str(), snapshot.timeout_seconds), (input, 7.0));
            assert_eq!(snapshot.expect_files, ["a/*.md"]);
            assert_eq!(second.request["input"], input);
            let first = job(&api, &api.get(&format!("{JOBS}/first")).await.body).await;
            assert_eq!(second.custom_fields, first.custom_fields, "{asked}");
            names.push(second.name);
        }
        // It is told in both directions, and of what was deleted too.
        let first = api.get(&format!("{JOBS}/first")).await.body;
        assert_eq!(first["reruns"], json!(names));
        let second = api.get(&format!("{JOBS}/{}", names[0])).await.body;
        assert_eq!(
            (&second["rerun_of"], &second["rerun_of_name"]),
            (&first["id"], &json!("first"))
        );
        let id: JobId = first["id"].as_str().expect("an id").parse().expect("a job id");
        api.records.jobs().tombstone(id).await.expect("it is hidden");
        let second = api.get(&format!("{JOBS}/{}", names[0])).await.body;
        assert_eq!(
            (&second["rerun_of"], &second["rerun_of_deleted"]),
            (&first["id"], &json!(true))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_u1_a_secret_that_is_gone_fails_the_request() {
    for api in Harness::start_both().await {
        admit(&api.records, "first").await;
        let path = format!("{JOBS}/first/rerun");
        let refused = api.send("POST", &path, None).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body["detail"].to_string().contains("referenced secrets were not found"));
        api.post(SECRETS, json!({"name": "key", "value": "v"})).await.status_is(201);
        api.send("POST", &path, None).await.status_is(201);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_u1_a_fork_begins_with_what_the_first_job_left() {
    for api in Harness::start_both().await {
        api.post(SECRETS, json!({"name": "key", "value": "v"})).await.status_is(201);
        let fork = async |name: &str| {
            let asked = json!({"workdir_from": "output", "input": "go on"});
            api.post(&format!("{JOBS}/{name}/rerun"), asked).await
        };
        let refused = async |name: &str, why: &str| {
            let answer = fork(name).await;
            assert_eq!(answer.status, 409, "{}", answer.body);
            let said = answer.body["detail"].as_str().expect("a sentence");
            let expected = format!("Job '{name}' left no working directory to go on from: {why}");
            assert!(said.starts_with(&expected), "{said}");
        };
        let first = admit(&api.records, "first").await;
        refused("first", "it is 'created' and has not saved it yet.").await;
        api.records.project(&story(first.id, &Outcome::Succeeded)).await.expect("it is taken in");
        let made = fork("first").await;
        assert_eq!(made.status, 201, "{}", made.body);
        let base = &made.body["spec"]["workdir"]["base_workdir"];
        let base = base.as_str().expect("a reference");
        assert!(base.starts_with("default/job-fileset-first#results/"), "{base}");
        assert!(base.ends_with("/output_workdir/"), "{base}");
        let second = job(&api, &made.body).await;
        let snapshot = second.snapshot.expect("it has one");
        let saved = api.records.jobs().result(first.id, "output_workdir").await.expect("listed");
        let source = Source::Bundle { object: saved.saved.object, path: String::new() };
        assert_eq!((snapshot.base, snapshot.input.as_str()), (Some(source), "go on"));

        let partial = admit(&api.records, "partial").await;
        let mut told = story(partial.id, &Outcome::Succeeded);
        for change in &mut told {
            let News::Fact(proof) = &mut change.news else { continue };
            proof.results.iter_mut().for_each(|result| result.complete = false);
        }
        api.records.project(&told).await.expect("it is taken in");
        refused("partial", "its output_workdir is incomplete.").await;
        let without = admit(&api.records, "without").await;
        let mut told = story(without.id, &Outcome::Succeeded);
        for change in &mut told {
            let News::Fact(proof) = &mut change.news else { continue };
            proof.results.clear();
        }
        api.records.project(&told).await.expect("it is taken in");
        refused("without", "it has no output_workdir.").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_of_what_starts_from_a_result_that_was_deleted_is_refused() {
    for api in Harness::start_both().await {
        let object = api.store.put("jobs/gone/1/1/output_workdir", "bytes".into()).await;
        let object = object.expect("it is stored");
        let mut new = new_job("next");
        let source = Source::Bundle { object: object.clone(), path: String::new() };
        new.snapshot.as_mut().expect("it has one").base = Some(source);
        api.records.jobs().admit(new).await.expect("it is admitted");
        api.post(SECRETS, json!({"name": "key", "value": "v"})).await.status_is(201);
        let path = format!("{JOBS}/next/rerun");
        api.post(&path, json!({})).await.status_is(201);
        api.store.delete(&object.key).await.expect("the store answers");
        let refused = api.post(&path, json!({})).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        let said = refused.body["detail"].as_str().expect("a sentence");
        assert!(said.contains(&format!("was deleted ({})", object.key)), "{said}");
    }
}

/// There is no session of a harness in our results, and nothing in a spec that could name one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_u2_resuming_a_session_is_refused_when_it_is_asked_for() {
    for api in Harness::start_both().await {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
        let body = |spec: serde_json::Value| json!({"spec": spec, "name": "first"});
        let execute = format!("{AGENTS}/jobs/execute");
        for field in ["resume_from", "session_id", "runtime_id"] {
            let mut spec = json!({"agent": "calc", "input": "x"});
            spec[field] = json!("s-1");
            let refused = api.post(&execute, body(spec)).await;
            assert_eq!(refused.status, 422, "{}", refused.body);
            assert_eq!(refused.body["detail"][0]["loc"], json!(["body", "spec", field]));
            assert_eq!(refused.body["detail"][0]["type"], "extra_forbidden");
        }
        api.post(&execute, body(json!({"agent": "calc", "input": "x"}))).await.status_is(201);
        let refused = api.post(&format!("{JOBS}/first/rerun"), json!({"resume": true})).await;
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert_eq!(refused.body["detail"][0]["loc"], json!(["body", "resume"]));
    }
}
