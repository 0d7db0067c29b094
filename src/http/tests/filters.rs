//! Filters of lists over HTTP, on both databases.

use serde_json::{Value, json};
use streams::code::Code;
use streams::id::JobId;
use streams::outcome::{Outcome, Status};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::harness::Harness;
use super::{AGENTS, FILESETS, JOBS, agent};
use crate::records::NewJob;
use crate::records::tests::job as story;

const EXECUTE: &str = "/apis/agents/v2/workspaces/default/jobs/execute";
const WORKSPACES: &str = "/apis/entities/v2/workspaces";

/// `path?filter=…` with the filter escaped.
pub(super) fn filtered(path: &str, filter: &str) -> String {
    let filter = percent_encoding::utf8_percent_encode(filter, percent_encoding::NON_ALPHANUMERIC);
    format!("{path}?filter={filter}&page_size=100")
}

/// Admits a job of a stored agent, or of an inline one.
async fn job(api: &Harness, name: &str, agent_ref: Option<&str>, request: Value) -> JobId {
    let mut snapshot = story::snapshot(name);
    snapshot.spec.agent_ref = agent_ref.map(str::to_owned);
    snapshot.spec.request = request;
    let agent_ref = agent_ref.map(str::to_owned);
    let new = NewJob { agent_ref, snapshot: Ok(snapshot), ..story::new_job(name) };
    let id = new.id;
    api.records.jobs().admit(new).await.expect("it is admitted");
    id
}

/// The names that a list answers, sorted.
async fn names(api: &Harness, path: &str) -> Vec<String> {
    let list = api.get(path).await;
    assert_eq!(list.status, 200, "{path}: {}", list.body);
    let name = |item: &Value| item["name"].as_str().expect("a name").to_owned();
    let mut names: Vec<_> =
        list.body["data"].as_array().expect("a list").iter().map(name).collect();
    assert_eq!(list.body["pagination"]["total_results"], names.len(), "{path}");
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_j2_odd_filters_are_answered_or_refused() {
    for api in Harness::start_both().await {
        odd_filters(&api).await;
    }
}

async fn odd_filters(api: &Harness) {
    job(api, "calc", Some("default/calc"), json!({"p%": 1, "a.b": 1, "a": {"b": 2}})).await;
    job(api, "far", Some("research/calc"), json!({"p%": 2, "t": "50%"})).await;
    job(api, "inline", None, json!({"p%": null})).await;
    let none: [&str; 0] = [];
    let finds = async |filter: &str, expected: &[&str]| {
        assert_eq!(names(api, &filtered(JOBS, filter)).await, expected, "{filter}");
        assert_eq!(names(api, &filtered(EXECUTE, filter)).await, expected, "{filter}");
    };
    finds(r#"{"spec.agent_ref":{"$in":["default/calc","research/calc"]}}"#, &["calc", "far"]).await;
    finds(r#"{"spec.agent_ref":{"$in":[]}}"#, &none).await;
    finds(r#"{"spec.agent_ref":{"$nin":[]}}"#, &["calc", "far"]).await;
    finds(r#"{"spec.agent_ref":{"$in":"default/calc"}}"#, &["calc"]).await;
    finds(r#"{"spec.agent_ref":{"$nin":["default/calc"]}}"#, &["far"]).await;
    finds(r#"{"$not":{"spec.agent_ref":"default/calc"}}"#, &["far", "inline"]).await;
    finds(r#"{"spec.agent_ref":null}"#, &["inline"]).await;
    finds(r#"{"spec.a'); drop table jobs;--":1}"#, &none).await;
    finds(r#"{"spec.request.p%":1}"#, &["calc"]).await;
    finds(r#"{"spec.request.p_":1}"#, &none).await;
    finds(r#"{"spec.request.p%":null}"#, &["inline"]).await;
    // A dot is a step: a key that has one cannot be named.
    finds(r#"{"spec.request.a.b":2.0}"#, &["calc"]).await;
    finds(r#"{"spec.request.a.b":1}"#, &none).await;
    finds(r#"{"spec.request":{"$hasKey":"a.b"}}"#, &["calc"]).await;
    finds(r#"{"spec.request.t":{"$like":"0%"}}"#, &["far"]).await;
    finds(r#"{"name":{"$like":"%"}}"#, &none).await;
    finds(r#"{"name":{"$like":"_al_"}}"#, &none).await;
    finds(r#"{"name":{"$like":"AL"}}"#, &["calc"]).await;

    let refuses = async |filter: &str, expected: &str| {
        let refused = api.get(&filtered(JOBS, filter)).await;
        assert_eq!(refused.status, 400, "{filter}: {}", refused.body);
        let detail = refused.body["detail"].as_str().expect("a sentence").to_owned();
        assert!(detail.contains(expected), "{filter}: {detail}");
    };
    refuses(r#"{"spec.agent_ref":{"$ne":"a/b"}}"#, "'$ne' is not a valid FilterOperator").await;
    refuses(r#"{"$where":"1"}"#, "'$where' is not a valid FilterOperator").await;
    refuses(r#"{"status":"error","status":"active"}"#, "key 'status' stands twice").await;
    refuses(r#"{"spec.a\"b":1}"#, "part 'a\"b' of the path cannot be asked for").await;
    refuses(r#"{"created_at":{"$gte":"junk"}}"#, "takes a time such as").await;
    refuses(r#"{"name":{}}"#, "Filter field 'name' has no operator").await;
    let plus = api.get(&format!("{JOBS}?filter[created_at][gte]=2026-01-01T00:00:00+02:00")).await;
    assert_eq!(plus.status, 400, "a + that is not escaped is a blank: {}", plus.body);

    // As many values as a URL holds; a longer one is refused before anybody reads it.
    let values = |count: usize| {
        let values: Vec<_> = (0..count).map(|n| format!("x{n}")).collect();
        format!("{JOBS}?filter[name][$in]={},far", values.join(","))
    };
    assert_eq!(names(api, &values(9_000)).await, ["far"]);
    assert_eq!(status_line(api, &values(20_000)).await, "HTTP/1.1 414 URI Too Long");
}

/// The first line of an answer to a request that no HTTP client would send.
async fn status_line(api: &Harness, path: &str) -> String {
    let address = api.url.strip_prefix("http://").expect("a plain address");
    let socket = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let (reading, mut writing) = socket.into_split();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let sending = tokio::spawn(async move { writing.write_all(request.as_bytes()).await });
    let line = BufReader::new(reading).lines().next_line().await.expect("an answer");
    // The server may hang up before it has read it all.
    let _ = sending.await.expect("it does not panic");
    line.unwrap_or_default()
}

/// FC-J4: the statuses that a list can be filtered by are those that jobs have, each job has one,
/// and those that are no end can be cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_j4_statuses_add_up() {
    for api in Harness::start_both().await {
        statuses_add_up(&api).await;
    }
}

async fn statuses_add_up(api: &Harness) {
    let failed = |code| Outcome::Failed { code, message: "it did".to_owned() };
    let ends = [
        Outcome::Succeeded,
        failed(Code::ActionFailed),
        Outcome::Cancelled { message: "by a user".to_owned() },
    ];
    // One job at every point of every story.
    for (n, end) in ends.iter().enumerate() {
        let length = story::story(JobId::new(), end).len();
        for told in 0..=length {
            let id = job(api, &format!("end-{n}-at-{told}"), None, json!({})).await;
            let mut changes = story::story(id, end);
            changes.truncate(told);
            api.records.project(&changes).await.expect("they are taken in");
            if told % 3 == 1 {
                api.records.jobs().request_cancel(id).await.expect("it is answered");
            }
        }
    }
    let all = api.get(&format!("{JOBS}?page_size=1")).await;
    let total = all.body["pagination"]["total_results"].as_u64().expect("a number");
    let mut seen = Vec::new();
    for list in [JOBS, EXECUTE] {
        let mut sum = 0;
        for status in Status::ALL {
            let found = api.get(&format!("{list}?filter[status]={status}&page_size=1000")).await;
            let items = found.body["data"].as_array().expect("a list").clone();
            assert!(items.iter().all(|item| item["status"] == status.as_str()), "{status}");
            assert_eq!(found.body["pagination"]["total_results"], items.len());
            sum += items.len() as u64;
            seen.extend(items.into_iter().filter(|_| list == JOBS).map(|item| (status, item)));
        }
        assert_eq!(sum, total, "{list}");
    }
    for (status, item) in seen {
        let name = item["name"].as_str().expect("a name");
        let phase = item["phase"].as_str().expect("a phase");
        let cancelled = api.send("POST", &format!("{JOBS}/{name}/cancel"), None).await;
        assert_eq!(cancelled.status, 200, "{name}, {status}: {}", cancelled.body);
        let now = cancelled.body["status"].as_str().expect("a status");
        // An end that is decided stays as it is.
        match status.is_terminal() || ["invoked", "acted"].contains(&phase) {
            true => assert_eq!(now, status.as_str(), "{name}"),
            false => assert!(["cancelling", "cancelled"].contains(&now), "{name}, {status}: {now}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_lists_have_fields_of_their_own() {
    for api in Harness::start_both().await {
        other_lists(&api).await;
    }
}

async fn other_lists(api: &Harness) {
    let agents = format!("{AGENTS}/agents");
    for name in ["adder", "counter"] {
        let mut new = agent(name);
        new["description"] = json!(format!("The {name}"));
        api.post(&agents, new).await.status_is(201);
    }
    let flow = json!({"name": "flow", "config": {"llms": {}}, "description": "100%"});
    api.post(&agents, flow).await.status_is(201);
    for (name, purpose) in [("data", "dataset"), ("src", "generic")] {
        let new = json!({"name": name, "purpose": purpose});
        api.post(FILESETS, new).await.status_is(200);
    }
    api.post(WORKSPACES, json!({"name": "research", "description": "Team Ä"})).await.status_is(201);

    let cases: &[(&str, &str, &[&str])] = &[
        (&agents, r#"{"config_format": "nemo-agents-spec-v1"}"#, &["adder", "counter"]),
        (&agents, r#"{"name": {"$in": "adder,flow"}}"#, &["adder", "flow"]),
        (&agents, r#"{"description": {"$like": "the c"}}"#, &["counter"]),
        (&agents, r#"{"description": {"$endsWith": "%"}}"#, &["flow"]),
        (&agents, r#"{"project": null, "workspace": "default", "name": "flow"}"#, &["flow"]),
        (&agents, r#"{"config.default_harness": "echo"}"#, &["adder", "counter"]),
        (&agents, r#"{"created_at": {"$lt": "2020-01-01"}}"#, &[]),
        (&agents, r#"{"updated_at": {"$gte": "2020-01-01"}, "name": "flow"}"#, &["flow"]),
        (FILESETS, r#"{"purpose": "dataset"}"#, &["data"]),
        (FILESETS, r#"{"name": {"$like": "SR"}}"#, &["src"]),
        (FILESETS, r#"{"storage_type": "local", "entity_type": "fileset"}"#, &["data", "src"]),
        (WORKSPACES, r#"{"name": "research"}"#, &["research"]),
        (WORKSPACES, r#"{"description": {"$startsWith": "Team Ä"}}"#, &["research"]),
        (WORKSPACES, r#"{"description": null}"#, &["default", "system"]),
    ];
    for (list, filter, expected) in cases {
        assert_eq!(names(api, &filtered(list, filter)).await, *expected, "{filter}");
    }

    let echo = async |path: &str| api.get(path).await.body["filter"].clone();
    assert_eq!(echo(&agents).await, json!({}));
    assert_eq!(
        echo(&format!("{agents}?filter[config_format]=x")).await,
        json!({"config_format": "x"})
    );
    assert_eq!(echo(WORKSPACES).await, Value::Null);
    assert_eq!(
        echo(&format!("{WORKSPACES}?filter[name]=research")).await,
        json!({"name": {"$eq": "research"}})
    );
    let filesets = api.get(&format!("{FILESETS}?filter[purpose]=dataset")).await;
    assert!(filesets.body.get("filter").is_none(), "filesets never echo");
    let jobs = api.get(JOBS).await;
    assert!(jobs.body.get("filter").is_none(), "without a filter there is nothing to echo");

    let fields = "['created_at', 'description', 'entity_type', 'id', 'name', 'project', 'purpose', \
                  'storage_type', 'updated_at', 'workspace']";
    let detail = format!("Unknown filter field 'bogus'. Valid fields: {fields}");
    let refused = api.get(&filtered(FILESETS, r#"{"bogus":1}"#)).await;
    refused.answers(400, json!({"detail": detail}));
    for list in [&agents, WORKSPACES] {
        let refused = api.get(&format!("{list}?filter[bogus]=1")).await;
        assert_eq!(refused.status, 400);
        assert!(
            refused.body["detail"].to_string().contains("Valid fields: ['"),
            "{}",
            refused.body
        );
    }
}
