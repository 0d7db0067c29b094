//! The API over real sockets, with SQLite, an S3 server and the broker's in-memory form.

mod auth;
mod batch;
mod cancel;
mod conformance;
mod deletion;
mod environments;
mod errors;
mod events;
mod files;
mod filters;
mod following;
mod harness;
mod idempotency;
mod intake;
mod last_output;
mod lists;
mod projection;
mod queue;
mod refusals;
mod rerun;
mod results;
mod routes;
mod unattended;

use serde_json::{Value, json};
use streams::id::{Attempt, JobId};
use streams::log::{Lines, LogBatch, LogLine, LogStream};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::Source;
use streams::subject;
use streams::topology::StreamName;
use workers::ports::{Admission, Catalog};

use crate::records::tests::job as story;
use harness::Harness;

const AGENTS: &str = "/apis/agents/v2/workspaces/default";
const JOBS: &str = "/apis/jobs/v2/workspaces/default/jobs";
const FILESETS: &str = "/apis/files/v2/workspaces/default/filesets";
const SECRETS: &str = "/apis/secrets/v2/workspaces/default/secrets";

fn agent(name: &str) -> Value {
    json!({
        "name": name,
        "config_format": "nemo-agents-spec-v1",
        "config": {
            "config_format": "nemo-agents-spec-v1",
            "name": name,
            "default_harness": "echo",
            "harnesses": {"echo": {"kind": "script", "settings": {"command": ["true"]}}},
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_that_are_not_there() {
    for api in Harness::start_both().await {
        routes_not_there(&api).await;
    }
}

async fn routes_not_there(api: &Harness) {
    api.get("/nope").await.answers(404, json!({"detail": "Not Found"}));
    let wrong = api.send("PATCH", JOBS, None).await;
    assert!(wrong.headers.get("allow").is_some());
    wrong.answers(405, json!({"detail": "Method Not Allowed"}));
    assert_eq!(api.send("HEAD", JOBS, None).await.status, 405);
    assert_eq!(api.send("HEAD", "/", None).await.status, 200);
    let redirected = api.get(&format!("{JOBS}/?page=1")).await;
    assert_eq!(redirected.status, 307);
    let location = redirected.headers["location"].to_str().expect("it is text");
    assert_eq!(location, format!("{}{JOBS}?page=1", api.url));
    api.get("/health/ready").await.answers(200, json!({"status": "ready"}));
    let discovery = json!({"auth_enabled": false, "oidc": null});
    api.get("/apis/auth/discovery").await.answers(200, discovery);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_cannot_be_read() {
    let api = Harness::start().await;
    let path = format!("{AGENTS}/jobs/execute");
    let empty =
        json!([{"type": "missing", "loc": ["body"], "msg": "Field required", "input": null}]);
    api.send("POST", &path, None).await.answers(422, json!({"detail": empty}));
    let broken =
        api.raw("POST", &path, "application/json", r#"{"spec": {"timeout_seconds": NaN}}"#);
    let broken = broken.await;
    assert_eq!(broken.status, 422);
    assert_eq!(broken.body["detail"][0]["type"], "json_invalid");
    assert!(broken.body.to_string().contains("timeout_seconds"), "{}", broken.body);
    let text = api.raw("POST", &path, "text/plain", "{}").await;
    assert_eq!(text.body["detail"][0]["type"], "model_attributes_type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_stored_normalised() {
    let api = Harness::start().await;
    let mut sent = agent("calc");
    sent["config"]["helix_registration"] = json!({"default_input": "hello"});
    let made = api.post(&format!("{AGENTS}/agents"), sent.clone()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["default_input"], "hello");
    assert_eq!(made.body["config"]["environment"]["workspace"], "./workspace");
    assert!(made.body["config"].get("helix_registration").is_none());
    let again = api.post(&format!("{AGENTS}/agents"), sent).await;
    assert_eq!(again.headers["x-should-retry"], "false");
    let detail = "Agent 'calc' already exists in workspace 'default'.";
    again.answers(409, json!({"detail": detail}));
    let mut wrong = agent("wrong");
    wrong["config"]["default_harness"] = json!("zz");
    let wrong = api.post(&format!("{AGENTS}/agents"), wrong).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.to_string().contains("must reference one of harnesses: echo"));
    let list = api.get(&format!("{AGENTS}/agents")).await;
    let keys: Vec<_> = list.body.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["data", "pagination", "sort", "filter"]);
    assert_eq!(api.send("DELETE", &format!("{AGENTS}/agents/calc"), None).await.status, 204);
    let gone = json!({"detail": "Agent 'calc' not found in workspace 'default'."});
    api.get(&format!("{AGENTS}/agents/calc")).await.answers(404, gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_keep_their_bytes_and_modes() {
    let api = Harness::start().await;
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    let files = format!("{FILESETS}/src/-");
    let small = api.put(&format!("{files}/app%2Frun.sh"), "755", "echo hi\n".into()).await;
    assert_eq!((small.status, &small.body["path"]), (200, &json!("app/run.sh")));
    // More than is held in memory, and not a multiple of anything.
    let large: Vec<u8> = (0..3_000_001_u32).map(|byte| byte.to_le_bytes()[0]).collect();
    api.put(&format!("{files}/large.bin"), "644", large.clone()).await.status_is(200);
    let read = api.bytes(&format!("{files}/large.bin"), None).await;
    assert!(read.bytes == large, "{} bytes came back", read.bytes.len());
    let part = api.bytes(&format!("{files}/large.bin"), Some("bytes=1000000-1000003")).await;
    assert_eq!((part.status, part.bytes.as_slice()), (206, &large[1_000_000..1_000_004]));
    assert_eq!(part.headers["content-range"], "bytes 1000000-1000003/3000001");
    let head = api.send("HEAD", &format!("{files}/app/run.sh"), None).await;
    assert_eq!((head.status, &head.headers["content-length"]), (200, &"8".parse().expect("ok")));

    let paths = |listed: Value| -> Vec<String> {
        let data = listed["data"].as_array().expect("a list").iter();
        data.map(|file| file["path"].as_str().expect("text").to_owned()).collect()
    };
    let list = format!("{FILESETS}/src/files");
    let check = async |query: &str, expected: &[&str]| {
        let listed = api.get(&format!("{list}{query}")).await;
        assert_eq!(paths(listed.body), expected, "{query}");
    };
    check("", &["app/run.sh", "large.bin"]).await;
    check("?path=app", &["app/run.sh"]).await;
    check("?path=app/", &["app/run.sh"]).await;
    check("?path=ap", &[]).await;
    check("?path=large.bin", &["large.bin"]).await;
    check("?path=large.bin/", &[]).await;
    let outside = api.get(&format!("{list}?path=../x")).await;
    assert_eq!(outside.status, 400);
    assert!(outside.body.to_string().contains("Path '../x' resolves outside"));
    assert_eq!(api.put(&format!("{files}/large.bin/x"), "644", vec![1]).await.status, 409);
    assert_eq!(api.send("DELETE", &format!("{files}/large.bin"), None).await.status, 200);
    let gone = json!({"detail": "File 'large.bin' not found in fileset 'default/src'"});
    api.get(&format!("{files}/large.bin")).await.answers(404, gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_recorded_pinned_and_submitted() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    api.put(&format!("{FILESETS}/src/-/project/a.txt"), "644", b"a".to_vec()).await.status_is(200);
    api.post(FILESETS, json!({"name": "calc-ethos"})).await.status_is(200);
    api.put(&format!("{FILESETS}/calc-ethos/-/agent.sh"), "755", b"x".to_vec())
        .await
        .status_is(200);
    let execute = format!("{AGENTS}/jobs/execute");
    let spec = json!({
        "agent": "calc",
        "input": "hi",
        "workdir": {
            "base_workdir": "src#project",
            "artifact_mounts": [{"ref": "src#project/a.txt", "mount_path": "b.txt"}],
        },
    });
    let made = api.post(&execute, json!({"spec": spec, "name": "run-1"})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["status"], "created");
    assert_eq!(made.body["spec"]["agent_ref"], "default/calc");
    assert_eq!(
        made.body["spec"]["workdir"],
        json!({
            "base_workdir": "default/src#project/",
            "artifact_mounts": [{"ref": "default/src#project/a.txt", "mount_path": "b.txt"}],
        })
    );
    assert_eq!(made.body["spec"]["agent"]["config"]["telemetry"], json!({"agent_name": "calc"}));

    let id: JobId = made.body["id"].as_str().expect("text").parse().expect("an id");
    let job = api.records.jobs().by_id(id).await.expect("records answer").expect("it is there");
    let snapshot = job.snapshot.expect("it has a snapshot");
    let Some(Source::Files { listing, path }) = &snapshot.base else { panic!("{snapshot:?}") };
    assert_eq!(path, "project");
    let listing = api.store.read(listing).await.expect("the store answers");
    assert!(listing.expect("it is stored").starts_with(br#"{"path":"project/a.txt""#));
    assert!(matches!(snapshot.ethos, Some(Source::Files { ref path, .. }) if path.is_empty()));
    let submitted = subject::fact(Phase::Submitted, "default", id);
    assert!(api.broker.last(StreamName::Intake, &submitted).await.expect("it answers").is_some());

    let generic = api.get(&format!("{JOBS}/{}", id.http())).await;
    assert_eq!(generic.body["fileset"], "job-fileset-run-1");
    assert_eq!(generic.body["platform_spec"]["steps"][0]["name"], "execute-agent");
    let list = api.get(&format!("{JOBS}?filter[spec.agent_ref]=default/calc")).await;
    assert_eq!(list.body["pagination"]["total_results"], 1);
    let echo = json!({"data.spec.agent_ref": {"$eq": "default/calc"}});
    assert_eq!(list.body["filter"], echo);
    let by_name = api.get(&format!("{execute}?filter[name]=run-1")).await;
    assert_eq!(by_name.body["pagination"]["total_results"], 1);

    let taken = api.post(&execute, json!({"spec": spec, "name": "run-1"})).await;
    taken.answers(409, json!({"detail": crate::catalog::name_taken("run-1", "default")}));
    let status = api.get(&format!("{JOBS}/run-1/status")).await;
    assert_eq!(status.body["steps"][0]["tasks"][0]["name"], format!("task-{}", id.uuid().simple()));
    let early = api.send("DELETE", &format!("{JOBS}/run-1"), None).await;
    let detail = "Cannot delete job 'run-1' while it is 'created'. Cancel the job and wait for it \
                  to reach a terminal state before deleting.";
    early.answers(409, json!({"detail": detail}));
    let cancelled = api.post(&format!("{execute}/run-1/cancel"), json!({})).await;
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelling")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_job_gives_its_results_and_can_be_deleted() {
    let api = Harness::start().await;
    let job = story::admit(&api.records, "run-1").await;
    let told = api.records.project(&story::story(job.id, &Outcome::Succeeded)).await;
    told.expect("the story is projected");
    api.store.put("jobs/report", "a report".into()).await.expect("it is stored");

    let typed = format!("{AGENTS}/jobs/execute/run-1/results");
    let list = api.get(&typed).await;
    let names = list.body["data"].as_array().expect("a list").iter();
    let names: Vec<_> = names.map(|result| result["name"].as_str().expect("text")).collect();
    assert_eq!(names.last(), Some(&"input_workdir"), "the newest come first");
    let report = api.get(&format!("{typed}/report")).await;
    assert_eq!(report.body["job"], job.id.http());
    assert_eq!(report.body["download_url"], format!("{}{typed}/report/download", api.url));
    let attempt = job.id.attempt_id(Attempt::FIRST);
    let place = format!("default/job-fileset-run-1#results/{attempt}/report");
    assert_eq!(report.body["artifact_url"], place);
    let missing = "Result 'nope' for job 'run-1' not found in workspace 'default'.";
    let missing = json!({"detail": missing});
    api.get(&format!("{JOBS}/run-1/results/nope")).await.answers(404, missing);

    let download = format!("{JOBS}/run-1/results/report/download");
    let part = api.bytes(&download, Some("bytes=0-0")).await;
    assert_eq!((part.status, part.bytes.as_slice()), (206, &b"a"[..]));
    assert_eq!(part.headers["content-type"], "application/x-tar");
    assert_eq!(part.headers["content-disposition"], "attachment; filename=\"report.tar.gz\"");

    let unchanged = api.post(&format!("{JOBS}/run-1/cancel"), json!({})).await;
    assert_eq!((unchanged.status, &unchanged.body["status"]), (200, &json!("completed")));
    let details = json!({"note": "kept"});
    let patched = api.send("PATCH", &format!("{JOBS}/run-1/status-details"), Some(details)).await;
    patched.answers(200, Value::Null);
    let shown = api.get(&format!("{JOBS}/run-1")).await;
    assert_eq!(shown.body["status_details"]["note"], "kept");

    let object = workers::store::key::manifest("default", job.id);
    api.store.put(&object, "{}".into()).await.expect("it is stored");
    assert_eq!(api.send("DELETE", &format!("{JOBS}/run-1"), None).await.status, 204);
    assert_eq!(api.store.size(&object).await.expect("the store answers"), None);
    let gone = json!({"detail": "Job 'run-1' not found in workspace 'default'."});
    api.get(&format!("{JOBS}/run-1")).await.answers(404, gone.clone());
    api.send("DELETE", &format!("{JOBS}/run-1"), None).await.answers(404, gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_makes_no_job_whichever_way_it_comes() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    api.put(&format!("{FILESETS}/src/-/a.txt"), "644", b"a".to_vec()).await.status_is(200);
    let transform = "Failed to transform nemo-agents-plugin-execute job input to output: ";
    let workdir = |base: &str| json!({"workdir": {"base_workdir": base}});
    let environment = |spec: Value| json!({"environment": {"environment_spec": spec}});
    let directory = "workdir.base_workdir must point to a non-empty directory or fileset root.";
    let cases = [
        (json!({"agent": "other/x"}), 422, format!("{transform}Agent 'other/x' not found.")),
        (workdir("nope"), 422, format!("{transform}HTTP 404: Fileset 'nope' not found in workspace 'default'")),
        (workdir("src#zzz/"), 422, format!("{transform}{directory}")),
        (workdir("src#a.txt"), 422, format!("{transform}{directory}")),
        (json!({"environment": "a/b/c"}), 422, format!("{transform}AgentEnvironment 'b/c' not found in workspace 'a'.")),
        (environment(json!({"provider": "docker"})), 422, format!("{transform}agents.execute jobs only support local Fabric environments.")),
        (environment(json!({"secrets": {"TOK": "nope"}})), 409, "Unable to create job because one or more referenced secrets were not found or are not accessible. Verify each platform_spec secret reference uses the expected workspace/name and that you have access.".to_owned()),
        (json!({"context": {"nemo_helix": 1}}), 422, "context must not set the reserved key 'nemo_helix'.".to_owned()),
    ];
    for (change, status, text) in cases {
        let mut spec = json!({"agent": "calc", "input": "x"});
        for (key, value) in change.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        let answer = api.post(&format!("{AGENTS}/jobs/execute"), json!({"spec": spec})).await;
        answer.answers(status, json!({"detail": text}));
        let fact = serde_json::from_value(json!({"spec": spec})).expect("a submit fact");
        let job = JobId::new();
        for _ in 0..2 {
            match api.catalog.admit(job, "default", &fact).await {
                Ok(Admission::Refused(refused)) => assert_eq!(refused, text),
                other => panic!("{other:?}"),
            }
        }
    }
    let no_input = json!({"spec": {"agent": "calc"}});
    let no_input = api.post(&format!("{AGENTS}/jobs/execute"), no_input).await;
    let detail = json!([{"type": "missing", "loc": ["body", "spec", "input"],
                         "msg": "Field required", "input": {"agent": "calc"}}]);
    no_input.answers(422, json!({"detail": detail}));
}

/// A list of violations over HTTP is one line in a fact's record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_request_is_refused_in_the_same_words_whichever_way_it_comes() {
    let api = Harness::start().await;
    let deep = (0..122).fold(json!(1), |inner, _| json!([inner]));
    let cases = [
        json!({"name": "No", "spec": {"agent": "calc"}}),
        json!({"name": "x".repeat(52), "spec": {"agent": "calc", "input": "x"}}),
        json!({"name": "No", "spec": {"agent": "a b", "bogus": 1}}),
        json!({"name": "deep", "spec": {"agent": "calc", "context": {"x": deep}}}),
    ];
    for body in cases {
        let answer = api.post(&format!("{AGENTS}/jobs/execute"), body.clone()).await;
        let violations = answer.body["detail"].as_array().expect("a list").iter();
        let lines = violations.map(|violation| {
            let loc = violation["loc"].as_array().expect("a list").iter();
            let loc: Vec<_> = loc.map(|step| step.as_str().expect("a key")).collect();
            format!("{}: {}", loc.join("."), violation["msg"].as_str().expect("text"))
        });
        let text = lines.collect::<Vec<_>>().join("; ");
        let fact = serde_json::from_value(body).expect("a submit fact");
        match api.catalog.admit(JobId::new(), "default", &fact).await {
            Ok(Admission::Refused(refused)) => assert_eq!(refused, text),
            other => panic!("{other:?}"),
        }
    }
    let list = api.get(JOBS).await;
    let list = String::from_utf8(list.bytes).expect("it is text");
    assert!(serde_json::from_str::<Value>(&list).is_ok(), "refused jobs spoil no list");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_is_admitted_once() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let submitted = json!({"spec": {"agent": "calc", "input": "x"}, "name": "from-fact"});
    let submitted = serde_json::from_value(submitted).expect("a submit fact");
    let job = JobId::new();
    for _ in 0..2 {
        match api.catalog.admit(job, "default", &submitted).await {
            Ok(Admission::Admitted(snapshot)) => assert_eq!(snapshot.name, "from-fact"),
            other => panic!("{other:?}"),
        }
    }
    let taken = api.catalog.admit(JobId::new(), "default", &submitted).await;
    let text = crate::catalog::name_taken("from-fact", "default");
    assert!(matches!(&taken, Ok(Admission::Refused(refused)) if *refused == text), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_do_not_come_out() {
    let api = Harness::start().await;
    let secret = json!({"name": "tavily", "value": "hunter2hunter2", "description": null});
    let made = api.post(SECRETS, secret.clone()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(!made.body.to_string().contains("hunter2"));
    let taken = json!({"detail": "Secret 'default/tavily' already exists"});
    api.post(SECRETS, secret).await.answers(409, taken);
    let refused = api.post(SECRETS, json!({"name": "B", "value": "hunter2hunter2"})).await;
    assert_eq!(refused.status, 422);
    assert!(!refused.body.to_string().contains("hunter2"), "{}", refused.body);
    let sent = r#"{"name": "other", "value": "hunter2hunter2"}"#;
    for (kind, body) in [("text/plain", sent), ("application/json", &sent[..sent.len() - 1])] {
        for (method, path) in [("POST", SECRETS), ("PATCH", &format!("{SECRETS}/tavily"))] {
            let refused = api.raw(method, path, kind, body).await;
            assert_eq!(refused.status, 422, "{}", refused.body);
            assert!(!refused.body.to_string().contains("hunter2"), "{}", refused.body);
        }
    }
    let list = api.get(SECRETS).await;
    assert!(list.body.get("sort").is_none() && list.body.get("filter").is_none());
    assert_eq!(api.get(&format!("{SECRETS}/tavily/access")).await.status, 403);
    assert_eq!(api.send("DELETE", &format!("{SECRETS}/tavily"), None).await.status, 204);
    let gone = json!({"detail": "Secret default/tavily not found"});
    api.get(&format!("{SECRETS}/tavily")).await.answers(404, gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_paged_by_lines_that_are_seen() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let spec = json!({"spec": {"agent": "calc", "input": "x"}, "name": "run-1"});
    let made = api.post(&format!("{AGENTS}/jobs/execute"), spec).await;
    let job: JobId = made.body["id"].as_str().expect("text").parse().expect("an id");
    let logs = format!("{JOBS}/run-1/logs");
    let nothing = json!({"data": [], "total": 0, "next_page": null, "prev_page": null});
    api.get(&logs).await.answers(200, nothing);

    // Ten lines to be seen in four batches, with a blank one in each.
    let mut prev = 0;
    for (first, texts) in [
        (1, ["a", "b", " ", "c"]),
        (5, ["d", "", "e", "f"]),
        (9, ["", "g", "h", "i"]),
        (13, ["j", "", "", ""]),
    ] {
        prev = api.publish(&batch(job, first, prev, &texts)).await;
    }
    let read = async |query: &str| {
        let page = api.get(&format!("{logs}{query}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let lines = page.body["data"].as_array().expect("a list").iter();
        let text: String = lines.map(|line| line["message"].as_str().expect("text")).collect();
        let cursor = |key: &str| page.body[key].as_str().map(str::to_owned);
        (text, page.body["total"].clone(), cursor("next_page"), cursor("prev_page"))
    };
    let (text, total, next, prev) = read("?limit=4").await;
    assert_eq!((text.as_str(), total, prev), ("abcd", json!(10), None));
    let next = next.expect("more follow");
    let (text, _, last, back) = read(&format!("?limit=4&page_cursor={next}")).await;
    assert_eq!(text, "efgh");
    let (text, _, end, _) = read(&format!("?limit=4&page_cursor={}", last.expect("more"))).await;
    assert_eq!((text.as_str(), end), ("ij", None));
    let (text, _, forward, first) =
        read(&format!("?limit=4&page_cursor={}", back.expect("a page before"))).await;
    assert_eq!((text.as_str(), forward, first), ("abcd", Some(next), None));

    let (text, _, next, prev) = read("?tail=3").await;
    assert_eq!((text.as_str(), next), ("hij", None));
    let prev = prev.expect("older lines");
    let (text, _, _, older) = read(&format!("?page_cursor={prev}")).await;
    assert_eq!((text.as_str(), older), ("abcdefg", None));
    let (text, _, _, older) = read(&format!("?limit=2&page_cursor={prev}")).await;
    assert_eq!((text.as_str(), older.is_some()), ("fg", true));

    let detail = "tail cannot be combined with limit; tail controls the returned log window size.";
    api.get(&format!("{logs}?tail=1&limit=1")).await.answers(400, json!({"detail": detail}));
    let bad = json!({"detail": "Invalid page cursor"});
    api.get(&format!("{logs}?page_cursor=zzz")).await.answers(422, bad);
    assert_eq!(api.get(&format!("{logs}?limit=0")).await.status, 422);
}

pub(super) fn batch(job: JobId, first: u64, prev: u64, texts: &[&str]) -> LogBatch {
    let line = |(text, n): (&&str, u64)| LogLine {
        n,
        at: jiff::Timestamp::UNIX_EPOCH,
        stream: LogStream::Stdout,
        text: (*text).to_owned(),
    };
    LogBatch {
        v: 1,
        job,
        workspace: "default".to_owned(),
        attempt: Attempt::FIRST,
        first,
        count: texts.len() as u64,
        blank: None,
        prev,
        offset: 0,
        total_bytes: 0,
        lines: Lines::Inline(texts.iter().zip(first..).map(line).collect()),
    }
}

/// Packs a log and removes its messages, as happens some time after a job's end.
async fn archive_log(api: &Harness, job: JobId) {
    let reader = workers::logs::LogReader::new(api.broker.clone());
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some((sequence, batch)) =
        reader.next("default", job, from).await.expect("the queue answers")
    {
        let Lines::Inline(inline) = batch.lines else { panic!("they are inline") };
        for line in inline {
            lines.extend(serde_json::to_vec(&line).expect("it is JSON"));
            lines.push(b'\n');
        }
        from = sequence + 1;
    }
    let packed = zstd::encode_all(lines.as_slice(), 0).expect("it is packed");
    let key = workers::store::key::logs("default", job);
    api.store.put(&key, packed.into()).await.expect("it is stored");
    crate::removal::purge(&*api.broker, "default", job).await.expect("the messages go");
}
