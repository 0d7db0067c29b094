//! `test_jobs_api.py`, its lists aside: those are beside the filters, and the cases about steps
//! are in `steps`.
//!
//! Not here, and why:
//! * `create_job_with_secrets` is skipped by the reference itself.
//! * `format_entity_validation_error_unknown_type_message` is about the words of its entity store.
//! * `cancel_job_conflict_hides_internal_transition`: no status here refuses a cancel.
//! * `create_job_conflict_does_not_classify_generic_message`: its generic text is for conflicts of
//!   a store that ours does not have.
//! * `create_job_conflict_sanitizes_log_fields`, `cancel_…`: names that could break a log line are
//!   refused by the pattern of names, and paths are logged as quoted fields.

use serde_json::{Value, json};
use streams::code::Code;
use streams::outcome::Outcome;
use streams::phase::Phase;

use super::{JOBS, ask, execute, get, rest, submit, tell, until};
use crate::catalog::SOURCE;
use crate::http::tests::harness::Harness;
use crate::http::tests::{AGENTS, agent};
use crate::records::tests::job as story;

/// A request of the generic collection with one step of this name.
fn with_step(name: &str) -> Value {
    let step = json!({"name": name, "executor": {"provider": "subprocess", "command": ["true"]}});
    json!({"source": "manual", "spec": {}, "platform_spec": {"steps": [step]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_using_typed_client() {
    let api = Harness::start().await;
    let made = submit(&api, "run-1").await;
    let shown = get(&api, "run-1").await;
    assert_eq!((&shown["id"], &shown["spec"]), (&made["id"], &made["spec"]));
    assert_eq!((&shown["source"], &shown["project"]), (&json!(SOURCE), &Value::Null));
    assert_eq!(shown["fileset"], "job-fileset-run-1");
    let steps = get(&api, "run-1/steps").await;
    assert_eq!(steps["pagination"]["total_results"], 1);
    assert_eq!(steps["data"][0]["name"], "execute-agent");
    let listed = api.get(JOBS).await.body;
    assert_eq!(listed["data"][0]["id"], made["id"]);

    let unnamed = json!({"spec": {"agent": "calc", "input": "x"}});
    let unnamed = api.post(&execute(), unnamed).await.body;
    let name = unnamed["name"].as_str().expect("it has a name");
    assert!(name.starts_with("nemo-agents-plugin-e-"), "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_with_invalid_step_name() {
    let api = Harness::start().await;
    let refused = api.post(JOBS, with_step("invalidCamelCase")).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        refused.body["detail"][0]["loc"],
        json!(["body", "platform_spec", "steps", 0, "name"])
    );
    assert_eq!(refused.body["detail"][0]["input"], "invalidCamelCase");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_name_validation() {
    let api = Harness::start().await;
    let not_run = json!({"detail": format!(
        "Jobs of source 'manual' cannot be run: this platform runs agents. Their jobs are made by \
         POST {}", execute()
    )});
    for name in ["valid-step-name", "step1", "my-training-step", "has_underscore"] {
        api.post(JOBS, with_step(name)).await.answers(422, not_run.clone());
    }
    for name in [
        "invalidCamelCase",
        "UPPERCASE",
        "has spaces",
        "-starts-with-dash",
        "ends-with-dash-",
        "a",
        "123",
    ] {
        let refused = api.post(JOBS, with_step(name)).await;
        assert_eq!(refused.body["detail"][0]["type"], "string_pattern_mismatch", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_with_invalid_project_name() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let body = json!({"spec": {"agent": "calc", "input": "x"}, "project": "A Project"});
    assert_eq!(api.post(&execute(), body).await.status, 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_validation_error_returns_actionable_message() {
    let api = Harness::start().await;
    let refused = api.post(JOBS, json!({"name": "g2"})).await;
    let entries = refused.body["detail"].as_array().expect("a list").iter();
    let entries: Vec<_> = entries.map(|it| (it["loc"][1].clone(), it["msg"].clone())).collect();
    let missing = |field: &str| (json!(field), json!("Field required"));
    assert_eq!(entries, [missing("spec"), missing("platform_spec"), missing("source")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_conflict_hides_raw_exception_message() {
    let api = Harness::start().await;
    submit(&api, "dup-job").await;
    let body = json!({"name": "dup-job", "spec": {"agent": "calc", "input": "x"}});
    let detail = "Job 'dup-job' already exists in workspace 'default'. Choose a different job name \
                  or delete the existing job before creating a new one.";
    api.post(&execute(), body).await.answers(409, json!({"detail": detail}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_missing_output_location_returns_422() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let body =
        json!({"spec": {"agent": "calc", "input": "x"}, "output_location": "no-such-fileset"});
    let refused = api.post(&execute(), body).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body["detail"].to_string().contains("no-such-fileset"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_secret_validation_error_returns_safe_guidance() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let environment = json!({"environment_spec": {"secrets": {"TOK": "team/hidden-key"}}});
    let spec = json!({"agent": "calc", "input": "x", "environment": environment});
    let refused = api.post(&execute(), json!({"spec": spec})).await;
    assert_eq!(
        (refused.status, &refused.headers["x-should-retry"]),
        (409, &"false".parse().expect("ok"))
    );
    let detail = refused.body["detail"].as_str().expect("a sentence");
    assert!(detail.contains("referenced secrets were not found"), "{detail}");
    assert!(!detail.contains("hidden-key"), "{detail}");
}

/// The reference's platform has no GPU because Docker has none; ours has no profile with one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_job_gpu_fail_fast_when_docker_no_gpus() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let compute = json!({"compute_spec": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}});
    let spec = json!({"agent": "calc", "input": "x", "environment": compute});
    let refused = api.post(&execute(), json!({"spec": spec})).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body["detail"].to_string().contains("gpu"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_lifecycle_single_step() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    let follows = async |status: &str| {
        let shown = get(&api, "run-1").await;
        assert_eq!(shown["status"], status);
        let whole = get(&api, "run-1/status").await;
        assert_eq!(
            (&whole["status"], &whole["steps"][0]["status"]),
            (&json!(status), &json!(status))
        );
        let step = get(&api, "run-1/steps/execute-agent").await;
        assert_eq!((&step["status"], &step["attempt_id"]), (&json!(status), &shown["attempt_id"]));
        let list = get(&api, "run-1/steps").await;
        assert_eq!(
            (&list["data"][0]["status"], &list["filter"]),
            (&json!(status), &json!({"job": "run-1"}))
        );
        assert!(get(&api, "-/steps").await.get("filter").is_none());
    };
    follows("created").await;
    tell(&api, &until(&job, Phase::Resolved, &Outcome::Succeeded)).await;
    follows("pending").await;
    tell(&api, &until(&job, Phase::Staged, &Outcome::Succeeded)).await;
    follows("active").await;
    tell(&api, &until(&job, Phase::Archived, &Outcome::Succeeded)).await;
    follows("completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_lifecycle_errored_job() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Staged, &Outcome::Succeeded)).await;
    let end = Outcome::Failed { code: Code::AgentFailed, message: "it fell over".to_owned() };
    tell(&api, &rest(&job, &end)).await;
    let status = get(&api, "run-1/status").await;
    let step = &status["steps"][0];
    let task = step["tasks"].as_array().and_then(|tasks| tasks.last()).expect("there is one");
    for part in [&status, step, task] {
        assert_eq!(part["status"], "error");
        assert_eq!(part["error_details"]["error"], "it fell over");
        assert_eq!(part["status_details"]["exit_code"], 1);
    }
    assert_eq!(step["status_details"]["task_cleanup_pending"], false);
    assert_eq!(get(&api, "run-1").await["status"], "error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_job_accepts_both_id_and_name() {
    let api = Harness::start().await;
    let made = submit(&api, "run-1").await;
    let id = made["id"].as_str().expect("text");
    for rest in ["", "/status", "/results"] {
        let by_name = get(&api, &format!("run-1{rest}")).await;
        assert_eq!(get(&api, &format!("{id}{rest}")).await, by_name, "{rest}");
    }
    assert_eq!(ask(&api, id, "pause").await["name"], "run-1");
    assert_eq!(ask(&api, id, "cancel").await["status"], "cancelling");
    let elsewhere = JOBS.replace("default", "-");
    for (at, name) in [(JOBS, "nope"), (&elsewhere, id), (&elsewhere, "run-1")] {
        let workspace = if at == JOBS { "default" } else { "-" };
        let detail = format!("Job '{name}' not found in workspace '{workspace}'.");
        api.get(&format!("{at}/{name}")).await.answers(404, json!({"detail": detail}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_result_crud() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Invoked, &Outcome::Succeeded)).await;
    let listed = get(&api, "run-1/results").await["data"].clone();
    let names: Vec<_> = listed.as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["report", "output_workdir", "input_workdir"]);
    for result in listed.as_array().expect("a list") {
        assert_eq!(
            (&result["job"], &result["workspace"]),
            (&json!(job.id.http()), &json!("default"))
        );
        assert_eq!(result["artifact_storage_type"], "fileset");
        let name = result["name"].as_str().expect("text");
        assert_eq!(&get(&api, &format!("run-1/results/{name}")).await, result);
    }
    let upward = get(&api, "run-1/results?sort=created_at").await["data"].clone();
    assert_eq!(upward[0]["name"], "input_workdir");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_result_download() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Invoked, &Outcome::Succeeded)).await;
    api.store.put("jobs/report", "archive".into()).await.expect("it is stored");
    let typed = format!("{}/run-1/results/report/download", execute());
    for at in [format!("{JOBS}/run-1/results/report/download"), typed] {
        let whole = api.bytes(&at, None).await;
        assert_eq!(whole.status, 200);
        assert_eq!(whole.headers["content-disposition"], "attachment; filename=\"report.tar.gz\"");
        assert_eq!(whole.headers["content-type"], "application/x-tar");
        for name in ["etag", "last-modified", "accept-ranges", "content-length"] {
            assert!(whole.headers.get(name).is_some(), "{name}");
        }
        assert!(whole.headers.get("content-encoding").is_none());
        assert_eq!(api.send("HEAD", &at, None).await.status, 405);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_non_terminal_job_returns_409_and_keeps_job() {
    not_deleted(JOBS.to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn factory_delete_non_terminal_job_propagates_409() {
    not_deleted(execute()).await;
}

async fn not_deleted(at: String) {
    let api = Harness::start().await;
    submit(&api, "run-1").await;
    let detail = "Cannot delete job 'run-1' while it is 'created'. Cancel the job and wait for it \
                  to reach a terminal state before deleting.";
    let refused = api.send("DELETE", &format!("{at}/run-1"), None).await;
    refused.answers(409, json!({"detail": detail}));
    let kept = api.get(&format!("{at}/run-1")).await;
    assert_eq!((kept.status, &kept.body["status"]), (200, &json!("created")));
}
