//! The cases of `test_jobs_api.py` and `test_jobs_endpoint_translation.py` about steps and tasks.
//!
//! Not here, and why:
//! * `job_lifecycle_multi_step`: a job has one step.
//! * `update_job_step_conflict_sanitizes_log_fields`: steps cannot be written.
//! * of the three about translation, the refusal of a step without command or entrypoint: steps
//!   are not submitted. What remains of the others is that a job's step is shown as what runs it.

use serde_json::{Value, json};
use streams::id::Attempt;
use streams::outcome::Outcome;
use streams::phase::Phase;

use super::{get, tell, until};
use crate::http::tests::JOBS;
use crate::http::tests::harness::Harness;
use crate::records::NewJob;
use crate::records::tests::job as story;

/// Jobs in every state that a list can tell apart: `run-1` completed, `run-2` active, `run-3`
/// created, and `other` of another workspace.
async fn scene(api: &Harness) {
    for (name, until_phase) in
        [("run-1", Some(Phase::Archived)), ("run-2", Some(Phase::Staged)), ("run-3", None)]
    {
        let job = story::admit(&api.records, name).await;
        if let Some(phase) = until_phase {
            tell(api, &until(&job, phase, &Outcome::Succeeded)).await;
        }
    }
    api.records.workspaces().insert("team", None).await.expect("it is made");
    let new = NewJob {
        workspace: "team".to_owned(),
        source: "somebody".to_owned(),
        ..story::new_job("other")
    };
    api.records.jobs().admit(new).await.expect("it is admitted");
}

fn jobs(list: &Value) -> Vec<&str> {
    let steps = list["data"].as_array().expect("a list").iter();
    let mut names: Vec<_> = steps.map(|step| step["job"].as_str().expect("text")).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_platform_jobs_steps_list_filter() {
    for api in Harness::start_both().await {
        scene(&api).await;
        for (query, expected, echo) in [
            ("", &["run-1", "run-2", "run-3"][..], Value::Null),
            (
                "filter[status]=completed&filter[status]=active",
                &["run-1", "run-2"],
                json!({"status": ["completed", "active"]}),
            ),
            ("filter[job]=run-2", &["run-2"], json!({"job": "run-2"})),
            (
                "filter[source]=nemo-agents-plugin-execute&filter[status]=created,error",
                &["run-3"],
                json!({"source": "nemo-agents-plugin-execute", "status": ["created", "error"]}),
            ),
            ("filter[source]=nobody", &[], json!({"source": "nobody"})),
            ("filter=%7B%22job%22:%22run-1%22%7D", &["run-1"], json!({"job": "run-1"})),
        ] {
            let list = get(&api, &format!("-/steps?{query}")).await;
            assert_eq!(jobs(&list), expected, "{query}");
            assert_eq!(list.get("filter").cloned().unwrap_or_default(), echo, "{query}");
            assert_eq!(list["pagination"]["total_results"], expected.len(), "{query}");
        }
        let page = get(&api, "-/steps?page=2&page_size=2").await;
        assert_eq!(page["pagination"]["total_pages"], 2);
        assert_eq!(page["data"].as_array().map(Vec::len), Some(1));
        assert_eq!(page["sort"], "created_at");
        let far = get(&api, &format!("-/steps?page={}&page_size=1000", u32::MAX)).await;
        assert_eq!(far["data"], json!([]));
        api.get(&format!("{JOBS}/-/steps?page_size=1001")).await.status_is(422);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_platform_jobs_steps_list_filter_invalid() {
    let api = Harness::start().await;
    let refused = api.get(&format!("{JOBS}/-/steps?filter[status]=bogus")).await;
    let detail = refused.body["detail"].as_str().expect("a sentence");
    assert_eq!(refused.status, 422);
    assert!(detail.contains("filter.status"), "{detail}");
    assert!(detail.contains("created, pending, active, cancelled, cancelling"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_steps_list_global_vs_workspaced() {
    let api = Harness::start().await;
    scene(&api).await;
    let of = async |workspace: &str| {
        let path = format!("{}/-/steps", JOBS.replace("default", workspace));
        api.get(&path).await.body
    };
    assert_eq!(jobs(&of("-").await), ["other", "run-1", "run-2", "run-3"]);
    assert_eq!(jobs(&of("team").await), ["other"]);
    let nothing = get(&api, "nope/steps").await;
    assert_eq!(nothing["data"], json!([]), "an unknown job has no steps");
    assert_eq!(nothing["filter"], json!({"job": "nope"}));
    assert_eq!(nothing["pagination"]["total_pages"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_status_details_crud() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Staged, &Outcome::Succeeded)).await;
    let patch = async |details: Value| {
        let path = format!("{JOBS}/run-1/status-details");
        api.send("PATCH", &path, Some(details)).await.answers(200, Value::Null);
    };
    patch(json!({"one": 1, "two": {"a": 1}})).await;
    patch(json!({"two": {"b": 2}})).await;
    let shown = get(&api, "run-1").await;
    let details = json!({"message": "Job is running", "turn": 0, "one": 1, "two": {"b": 2}});
    assert_eq!(shown["status_details"], details);

    let status = get(&api, "run-1/status").await;
    let step = &status["steps"][0];
    let own = json!({"message": "Job is running", "turn": 0});
    assert_eq!((&step["status_details"], &step["error_details"]), (&own, &json!({})));
    let task = &step["tasks"][0];
    assert_eq!((&task["status_details"], &task["error_details"]), (&own, &json!({})));
    assert_eq!((&task["error_stack"], &status["error_details"]), (&Value::Null, &Value::Null));
    assert_eq!(get(&api, "run-1/steps/execute-agent").await["error_details"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_status_timestamps() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    tell(&api, &until(&job, Phase::Archived, &Outcome::Succeeded)).await;
    let status = get(&api, "run-1/status").await;
    let step = &status["steps"][0];
    for part in [&status, step, &step["tasks"][0]] {
        assert_eq!(part["created_at"], "2027-01-15T08:00:00.000000Z", "{part}");
    }
    assert_eq!(status["updated_at"], status["created_at"], "a job's own does not move");
    assert_eq!(step["updated_at"], "2027-01-15T08:00:50.000000Z");
}

/// Each start of the agent is a task: the first has the job's own digits, and one that was lost
/// stays beside the one that was started after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_attempt_is_a_task() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    let first = job.id.task_name(Attempt::FIRST);
    assert_eq!(first, format!("task-{}", job.id.uuid().simple()));
    let tasks = "run-1/steps/execute-agent/tasks";
    let names = |list: &Value| -> Vec<String> {
        let tasks = list["data"].as_array().expect("a list").iter();
        tasks.map(|task| format!("{} {}", task["name"], task["status"])).collect()
    };
    assert_eq!(names(&get(&api, tasks).await), [format!("\"{first}\" \"created\"")]);
    tell(&api, &until(&job, Phase::Staged, &Outcome::Succeeded)).await;
    assert_eq!(names(&get(&api, tasks).await), [format!("\"{first}\" \"active\"")]);
    tell(&api, &[story::running(job.id, 2, 31, 0)]).await;
    let second = job.id.task_name(Attempt(2));
    let both = [format!("\"{second}\" \"active\""), format!("\"{first}\" \"error\"")];
    assert_eq!(names(&get(&api, tasks).await), both, "the newest first");
    let lost = get(&api, &format!("{tasks}/{first}")).await;
    assert_eq!(lost["error_details"]["message"], "Local subprocess metadata not found");
    for key in ["id", "entity_id", "parent", "step_id", "created_by", "db_version"] {
        assert!(lost.get(key).is_some_and(|value| !value.is_null()), "{key}: {lost}");
    }
    let shown = get(&api, "run-1/status").await["steps"][0]["tasks"].clone();
    assert_eq!(shown[0]["name"], json!(first), "in the order in which they were made");
}

/// `test_jobs_endpoint_translation.py`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cpu_step_becomes_subprocess_when_configured() {
    let api = Harness::start().await;
    story::admit(&api.records, "run-1").await;
    let shown = get(&api, "run-1").await;
    let step = &shown["platform_spec"]["steps"][0];
    let expected = json!({
        "provider": "subprocess", "profile": "default", "command": ["errand-runner", "supervise"],
    });
    assert_eq!((&step["name"], &step["executor"]), (&json!("execute-agent"), &expected));
    assert_eq!(step["config"], shown["spec"]);
}
