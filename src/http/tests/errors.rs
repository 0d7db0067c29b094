//! Every refusal of the API, word for word, as snapshots: what callers and their scripts read.
//!
//! A snapshot has a test's requests by name, each with its status and its body. Filters have a
//! grammar of their own, and their refusals are kept beside it. Refusals are also where it is
//! checked that every 409, and nothing else, says that trying again is of no use.

use serde_json::{Map, Value, json};
use streams::broker::{Expect, Publication};
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::subject;
use streams::topology::Limits;

use super::harness::{Harness, Setup};
use super::{AGENTS, FILESETS, JOBS, SECRETS, agent};
use crate::records::tests::job as story;

const WORKSPACES: &str = "/apis/entities/v2/workspaces";

/// A request that is refused.
struct Case {
    name: &'static str,
    method: &'static str,
    path: String,
    sent: Sent,
}

enum Sent {
    Nothing,
    Json(Value),
    Raw(&'static str, &'static str),
    Header(&'static str, &'static str),
}

fn case(name: &'static str, method: &'static str, path: impl Into<String>) -> Case {
    Case { name, method, path: path.into(), sent: Sent::Nothing }
}

fn post(name: &'static str, path: impl Into<String>, body: Value) -> Case {
    Case { sent: Sent::Json(body), ..case(name, "POST", path) }
}

impl Case {
    fn sends(self, sent: Sent) -> Self {
        Self { sent, ..self }
    }
}

/// Sends the requests, and returns what came of each.
async fn provoke(api: &Harness, cases: impl IntoIterator<Item = Case>) -> Value {
    let mut found = Map::new();
    for Case { name, method, path, sent } in cases {
        let answer = match sent {
            Sent::Nothing => api.send(method, &path, None).await,
            Sent::Json(body) => api.send(method, &path, Some(body)).await,
            Sent::Raw(kind, body) => api.raw(method, &path, kind, body).await,
            Sent::Header(header, value) => api.ask(method, &path, &[(header, value)]).await,
        };
        assert!(answer.status >= 400, "{name} was not refused: {}", answer.body);
        let told = answer.headers.get("x-should-retry").map(|value| value == "false");
        assert_eq!(told, (answer.status == 409).then_some(true), "{name}");
        let entry = json!({
            "request": format!("{method} {path}"), "status": answer.status, "body": answer.body,
        });
        assert!(found.insert(name.to_owned(), entry).is_none(), "{name} is there twice");
    }
    Value::Object(found)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_and_bodies() {
    let api = Harness::start().await;
    let details = format!("{JOBS}/run-1/status-details");
    story::admit(&api.records, "run-1").await;
    let raw = |name, kind, body| case(name, "POST", WORKSPACES).sends(Sent::Raw(kind, body));
    let cases = [
        case("route", "GET", "/nope"),
        case("method", "PATCH", JOBS),
        case("path that is no text", "GET", "/nope/%ff"),
        case("no body", "POST", WORKSPACES),
        raw("body that is null", "application/json", "null"),
        raw("body that is no JSON", "application/json", "{\"name\": }"),
        raw("body that is cut off", "application/json", "{\"name\": \"a"),
        raw("body of another kind", "text/plain", "{}"),
        post("body that is a list", WORKSPACES, json!([1])),
        case("details that are a list", "PATCH", details).sends(Sent::Json(json!([1]))),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists() {
    let api = Harness::start().await;
    let get = |name, path: String| case(name, "GET", path);
    let cases = [
        get("page of jobs", format!("{JOBS}?page=0")),
        get("page of filesets", format!("{FILESETS}?page=0")),
        get("page size", format!("{JOBS}?page_size=1001")),
        get("page size that is no number", format!("{SECRETS}?page_size=x")),
        get("order", format!("{JOBS}?sort=name")),
        get("all of it", format!("{FILESETS}?page=-1&page_size=101&sort=x")),
        get("order of steps", format!("{JOBS}/-/steps?sort=name")),
        get("status of steps", format!("{JOBS}/-/steps?filter[status]=bogus")),
        get("unknown filter of steps", format!("{JOBS}/-/steps?filter[bogus]=1")),
        get("two jobs of steps", format!("{JOBS}/-/steps?filter[job]=a,b")),
        get("flag of steps", format!("{JOBS}/-/steps?filter[task_cleanup_pending]=2")),
        get("JSON of steps", format!("{JOBS}/-/steps?filter=%7B")),
        get(
            "operator of steps",
            format!("{JOBS}/-/steps?filter=%7B%22job%22:%7B%22$gt%22:1%7D%7D"),
        ),
        get("workspace of jobs", JOBS.replace("default", "nope")),
        get("workspace of secrets", SECRETS.replace("default", "nope")),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workspaces() {
    let api = Harness::start().await;
    api.post(WORKSPACES, json!({"name": "team"})).await.status_is(201);
    let secrets = SECRETS.replace("default", "team");
    api.post(&secrets, json!({"name": "key", "value": "v"})).await.status_is(201);
    let members = format!("{WORKSPACES}/team/members");
    let nul = json!({"description": "a\u{0}b"});
    let cases = [
        post("name that is no name", WORKSPACES, json!({"name": "Bad Name"})),
        post("no name", WORKSPACES, json!({})),
        post("name that is taken", WORKSPACES, json!({"name": "team"})),
        post("name that is reserved", WORKSPACES, json!({"name": "sample-x"})),
        case("unknown", "GET", format!("{WORKSPACES}/nope")),
        case("unknown to change", "PUT", format!("{WORKSPACES}/nope")).sends(Sent::Json(json!({}))),
        case("text of a NUL", "PUT", format!("{WORKSPACES}/team")).sends(Sent::Json(nul)),
        case("unknown to remove", "DELETE", format!("{WORKSPACES}/nope")),
        case("seeded to remove", "DELETE", format!("{WORKSPACES}/default")),
        case("full to remove", "DELETE", format!("{WORKSPACES}/team")),
        case("removal", "GET", "/apis/entities/v2/workspace-deletions/team"),
        post("member without principal", &members, json!({})),
        post("member", &members, json!({"principal": "me", "roles": ["Viewer"]})),
        case("member to change", "PUT", format!("{members}/me"))
            .sends(Sent::Json(json!({"roles": []}))),
        case("member to remove", "DELETE", format!("{members}/me")),
        post(
            "unknown to write to",
            SECRETS.replace("default", "-"),
            json!({"name": "aa", "value": "v"}),
        ),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents() {
    let api = Harness::start().await;
    let at = format!("{AGENTS}/agents");
    api.post(&at, agent("calc")).await.status_is(201);
    let with = |key: &str, value: Value| {
        let mut sent = agent("other");
        sent[key] = value;
        sent
    };
    let cases = [
        post("nothing", &at, json!({})),
        post("name that is no name", &at, with("name", json!("Bad Name"))),
        post("name that is taken", &at, agent("calc")),
        post("unknown format", &at, with("config_format", json!("zz"))),
        post("configuration", &at, with("config", json!({"name": "x"}))),
        post("unknown action", &at, with("post_run_actions", json!(["zz"]))),
        post("reference in a schema", &at, with("context_schema", json!({"$ref": "#"}))),
        case("unknown", "GET", format!("{at}/nope")),
        case("unknown to remove", "DELETE", format!("{at}/nope")),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn execute_requests() {
    let api = Harness::start().await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    story::admit(&api.records, "taken").await;
    let at = format!("{AGENTS}/jobs/execute");
    let body = |key: &str, value: Value| {
        let mut body = json!({"spec": {"agent": "calc", "input": "x"}});
        body[key] = value;
        body
    };
    let spec = |change: Value| {
        let mut body = json!({"spec": {"agent": "calc", "input": "x"}});
        for (key, value) in change.as_object().expect("an object") {
            body["spec"][key] = value.clone();
        }
        body
    };
    let inside = |part: Value| spec(json!({"environment": {"environment_spec": part}}));
    let base = |base: &str| spec(json!({"workdir": {"base_workdir": base}}));
    let long = "n".repeat(52);
    let inline = json!({"config": {"a": 1}});
    let both = json!({"extension": {"kind": "noop"}, "post_run_action": {"kind": "noop"}});
    let mounts = json!([
        {"ref": "src", "mount_path": "a"}, {"ref": "src", "mount_path": "a/b"},
        {"ref": "src", "mount_path": "../x"},
    ]);
    let sent = [
        ("no spec", json!({})),
        ("surplus key", body("zz", json!(1))),
        ("name that is too long", body("name", json!(long))),
        ("name that is taken", body("name", json!("taken"))),
        ("project", body("project", json!("p"))),
        ("profile", body("profile", json!("zz"))),
        ("output location", body("output_location", json!("nope"))),
        ("no agent", json!({"spec": {"input": "x"}})),
        ("no input", json!({"spec": {"agent": "calc"}})),
        ("agent that is no reference", spec(json!({"agent": "x y"}))),
        ("unknown agent", spec(json!({"agent": "other/x"}))),
        ("inline agent of another format", spec(json!({"agent": inline}))),
        ("timeout", spec(json!({"timeout_seconds": 0}))),
        ("timeout that is too long", spec(json!({"timeout_seconds": 1e9}))),
        ("blank image", spec(json!({"image": " "}))),
        ("image", spec(json!({"image": "a/b:c"}))),
        ("cost", spec(json!({"max_cost_usd": 5}))),
        ("two actions", spec(both)),
        ("unknown action", spec(json!({"post_run_action": {"kind": "zz"}}))),
        ("reserved context", spec(json!({"context": {"nemo_helix": 1}}))),
        ("mounts", spec(json!({"workdir": {"artifact_mounts": mounts}}))),
        ("unknown fileset", base("nope")),
        ("empty fileset", base("src")),
        ("path that escapes", base("src#../x")),
        ("unknown environment", spec(json!({"environment": "nope"}))),
        ("provider", inside(json!({"provider": "docker"}))),
        ("unknown secret", inside(json!({"secrets": {"TOK": "nope"}}))),
        ("reserved variable", inside(json!({"secrets": {"NHX_BASE_URL": "nope"}}))),
    ];
    let mut cases: Vec<_> = sent.map(|(name, body)| post(name, &at, body)).into();
    let elsewhere = |workspace: &str| at.replace("default", workspace);
    cases.push(post("unknown workspace", elsewhere("nope"), spec(json!({}))));
    cases.push(post("workspace that is no name", elsewhere("Bad%20Ws"), spec(json!({}))));
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs() {
    let api = Harness::start().await;
    story::admit(&api.records, "run-1").await;
    let done = story::admit(&api.records, "done").await;
    let told = api.records.project(&story::story(done.id, &Outcome::Succeeded)).await;
    told.expect("the story is projected");
    let get = |name, rest: &str| case(name, "GET", format!("{JOBS}/{rest}"));
    let write = |name, method, rest: &str, body: Value| {
        case(name, method, format!("{JOBS}/{rest}")).sends(Sent::Json(body))
    };
    let task = "run-1/steps/execute-agent/tasks/t";
    let artifact = json!({"artifact_url": "default/a#b", "artifact_storage_type": "fileset"});
    let cases = [
        get("unknown", "nope"),
        get("status of unknown", "nope/status"),
        get("log of unknown", "nope/logs"),
        get("results of unknown", "nope/results"),
        write("cancel of unknown", "POST", "nope/cancel", json!({})),
        write("pause of unknown", "POST", "nope/pause", json!({})),
        write("details of unknown", "PATCH", "nope/status-details", json!({})),
        case("unfinished to delete", "DELETE", format!("{JOBS}/run-1")),
        get("result", "done/results/nope"),
        get("bytes of a result", "done/results/nope/download"),
        get("order of results", "done/results?sort=name"),
        write("result without a place", "POST", "run-1/results/extra", json!({})),
        write("result of unknown", "POST", "nope/results/extra", artifact.clone()),
        write("result that is there", "POST", "done/results/report", artifact.clone()),
        write("result to add", "POST", "run-1/results/extra", artifact),
        case("range", "GET", format!("{JOBS}/done/results/report/download"))
            .sends(Sent::Header("range", "bytes=9-")),
        get("step", "run-1/steps/nope"),
        get("step by id", &format!("{}/steps/execute-agent", done.id.http())),
        get("tasks of unknown", "nope/steps/s/tasks"),
        get("tasks of a step", "run-1/steps/nope/tasks"),
        get("task", task),
        write("step without status", "PATCH", "run-1/steps/execute-agent/status", json!({})),
        write(
            "step to a bogus status",
            "PATCH",
            "run-1/steps/execute-agent/status",
            json!({"status": "zzz"}),
        ),
        write(
            "step to move",
            "PATCH",
            "run-1/steps/execute-agent/status",
            json!({"status": "active"}),
        ),
        write("task to write", "PUT", task, json!({"status": "active"})),
    ];
    let mut found = provoke(&api, cases).await;
    found["step by id"] = redacted(found["step by id"].take(), done.id);
    insta::assert_json_snapshot!(found);
}

/// Without the id, which is another each time.
fn redacted(entry: Value, job: JobId) -> Value {
    entry.to_string().replace(&job.http(), "[id]").parse().expect("it is still JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_the_generic_collection() {
    let api = Harness::start().await;
    let step = |name: &str| json!({"name": name, "executor": {"provider": "subprocess"}});
    let steps =
        |steps: Value| json!({"source": "manual", "spec": {}, "platform_spec": {"steps": steps}});
    let with = |key: &str, value: Value| {
        let mut body = steps(json!([step("one")]));
        body[key] = value;
        body
    };
    let elsewhere = JOBS.replace("default", "nope");
    let cases = [
        post("nothing", JOBS, json!({})),
        post("no step", JOBS, steps(json!([]))),
        post("steps of one name", JOBS, steps(json!([step("one"), step("one")]))),
        post("step that has no name", JOBS, steps(json!([{"executor": {"provider": "zz"}}]))),
        post("step whose name is none", JOBS, steps(json!([step("Bad Name")]))),
        post("name that is too long", JOBS, with("name", json!("n".repeat(52)))),
        post("unknown workspace", elsewhere, steps(json!([step("one")]))),
        post("another source", JOBS, steps(json!([step("one")]))),
        post("our source", JOBS, with("source", json!(crate::catalog::SOURCE))),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs() {
    let api = Harness::start().await;
    story::admit(&api.records, "run-1").await;
    let get = |name, query: &str| case(name, "GET", format!("{JOBS}/run-1/logs?{query}"));
    let tailed = bs58::encode("t:3:another view").into_string();
    let cases = [
        get("limit", "limit=0"),
        get("limit that is too large", "limit=10001"),
        get("limit that is no number", "limit=x"),
        get("tail", "tail=0&limit=0"),
        get("tail and limit", "tail=3&limit=3"),
        get("tail and cursor", "tail=3&page_cursor=abc"),
        get("cursor", "page_cursor=abc"),
        get("cursor of another view", &format!("page_cursor={tailed}")),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filesets() {
    let api = Harness::start().await;
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    api.put(&format!("{FILESETS}/src/-/dir/file"), "644", b"x".to_vec()).await.status_is(200);
    story::admit(&api.records, "run-1").await;
    let file = |name, method, path: &str| case(name, method, format!("{FILESETS}/src/-/{path}"));
    let put = |name, path: &str| file(name, "PUT", path).sends(Sent::Raw("text/plain", "x"));
    let own = format!("{FILESETS}/job-fileset-run-1");
    let form = Sent::Raw(
        "multipart/form-data; boundary=x",
        "--x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--x--\r\n",
    );
    let cases = [
        post("nothing", FILESETS, json!({})),
        post("purpose", FILESETS, json!({"name": "aa", "purpose": "bogus"})),
        post("description", FILESETS, json!({"name": "aa", "description": "d".repeat(256)})),
        post("name that is taken", FILESETS, json!({"name": "src"})),
        post("name that is reserved", FILESETS, json!({"name": "job-fileset-x"})),
        post("local storage", FILESETS, json!({"name": "aa", "storage": {"type": "local"}})),
        post("other storage", FILESETS, json!({"name": "aa", "storage": {"type": "s3"}})),
        case("unknown", "GET", format!("{FILESETS}/nope")),
        case("unknown to remove", "DELETE", format!("{FILESETS}/nope")),
        case("refresh", "POST", format!("{FILESETS}/src/refresh")),
        case("text of a NUL", "PATCH", format!("{FILESETS}/src"))
            .sends(Sent::Json(json!({"description": "a\u{0}b"}))),
        case("files of unknown", "GET", format!("{FILESETS}/nope/files")),
        case("files outside", "GET", format!("{FILESETS}/src/files?path=../x")),
        case("cache status", "GET", format!("{FILESETS}/src/files?include_cache_status=x")),
        put("path outside", "..%2Fx"),
        put("absolute path", "%2Fetc%2Fx"),
        put("no path", ""),
        put("path that is the root", "a%2F.."),
        put("path that is a directory", "dir"),
        put("path below a file", "dir/file/below"),
        file("mode", "PUT", "a").sends(Sent::Header("x-errand-mode", "999")),
        file("form without a file", "PUT", "a").sends(form),
        file("broken form", "PUT", "a").sends(Sent::Raw("multipart/form-data; boundary=x", "x")),
        file("range", "GET", "dir/file").sends(Sent::Header("range", "bytes=100-200")),
        file("range that is none", "GET", "dir/file").sends(Sent::Header("range", "junk")),
        file("file", "GET", "nope"),
        file("directory", "GET", "dir"),
        file("directory to remove", "DELETE", "dir"),
        case("job's own to remove", "DELETE", own.clone()),
        case("job's own to write", "PUT", format!("{own}/-/a")).sends(Sent::Raw("text/plain", "x")),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets() {
    let api = Harness::start().await;
    api.post(SECRETS, json!({"name": "key", "value": "v"})).await.status_is(201);
    let change =
        |name, body: Value| case(name, "PATCH", format!("{SECRETS}/key")).sends(Sent::Json(body));
    let cases = [
        post("nothing", SECRETS, json!({})),
        post("name that is no name", SECRETS, json!({"name": "Bad", "value": "v"})),
        post("name that is taken", SECRETS, json!({"name": "key", "value": "v"})),
        post("empty value", SECRETS, json!({"name": "aa", "value": ""})),
        change("value that is empty", json!({"value": ""})),
        change("value of a NUL", json!({"value": "a\u{0}b"})),
        change("text of a NUL", json!({"description": "a\u{0}b"})),
        change("value that is too long", json!({"value": "x".repeat(200_000)})),
        case("unknown", "GET", format!("{SECRETS}/nope")),
        case("unknown to remove", "DELETE", format!("{SECRETS}/nope")),
        case("access to unknown", "GET", format!("{SECRETS}/nope/access")),
        case("access", "GET", format!("{SECRETS}/key/access")),
    ];
    insta::assert_json_snapshot!(provoke(&api, cases).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_the_callers_fault() {
    // Nothing fits into its queue.
    let limits = Limits { intake_max_bytes: 1, ..Limits::default() };
    let api = Harness::set_up(Setup { limits, ..Setup::default() }).await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    api.post(FILESETS, json!({"name": "src"})).await.status_is(200);
    let put = api.put(&format!("{FILESETS}/src/-/a"), "644", b"x".to_vec()).await;
    let blob = put.body["sha256"].as_str().expect("it has a digest").to_owned();
    api.store.delete(&workers::store::key::blob(&blob)).await.expect("it is deleted");
    let job = story::admit(&api.records, "run-1").await;
    let garbage = Publication {
        subject: subject::logs("default", job.id),
        payload: "garbage".into(),
        message_id: None,
        expect: Expect::Any,
        traceparent: None,
    };
    api.broker.publish(garbage).await.expect("the queue takes it");
    let submission = json!({"spec": {"agent": "calc", "input": "x"}});
    let mut found = provoke(
        &api,
        [
            post("full queue", format!("{AGENTS}/jobs/execute"), submission),
            case("bytes that are gone", "GET", format!("{FILESETS}/src/-/a")),
            case("log that is none", "GET", format!("{JOBS}/run-1/logs")),
        ],
    )
    .await;
    api.records.close().await;
    let closed = [
        case("no records", "GET", format!("{JOBS}/run-1")),
        case("no records to be ready", "GET", "/health/ready"),
    ];
    let closed = provoke(&api, closed).await;
    found
        .as_object_mut()
        .expect("an object")
        .extend(closed.as_object().cloned().unwrap_or_default());
    insta::assert_json_snapshot!(found);
}
