//! Batches: an outcome for each line, the same jobs for the same lines, and what is counted.

use std::io;

use futures_util::stream;
use serde_json::{Value, json};
use streams::code::Code;
use streams::id::JobId;
use streams::outcome::Outcome;
use streams::topology::{Limits, StreamName};
use tokio::sync::mpsc;

use super::harness::{Harness, Setup};
use super::{AGENTS, JOBS, agent};
use crate::catalog::Settings;
use crate::http::tests::intake::fill;
use crate::records::tests::job::story;

fn batches() -> String {
    format!("{AGENTS}/jobs/execute:batch")
}

async fn furnished() -> [Harness; 2] {
    let both = Harness::start_both().await;
    for api in &both {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    }
    both
}

fn line(input: usize) -> String {
    json!({"spec": {"agent": "calc", "input": input.to_string()}}).to_string()
}

/// So many lines; in the place of one there is something else.
fn lines(count: usize, wrong: Option<(usize, &str)>) -> String {
    let lines = (1..=count).map(|number| match wrong {
        Some((at, text)) if at == number => text.to_owned(),
        _ => line(number),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Sends lines; an outcome for each.
async fn outcomes(api: &Harness, query: &str, key: Option<&str>, text: String) -> Vec<Value> {
    let answer = api.lines(&format!("{}?{query}", batches()), key, text).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    let text = String::from_utf8(answer.bytes).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn id(outcome: &Value) -> JobId {
    let id = outcome["job"]["id"].as_str();
    id.unwrap_or_else(|| panic!("no job: {outcome}")).parse().expect("a job id")
}

async fn counted(api: &Harness, group: &str) -> Value {
    let answer = api.get(&format!("{}/{group}", batches())).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_t1_each_line_has_its_outcome_and_a_retry_makes_no_second_job() {
    for api in furnished().await {
        let wrong = r#"{"spec": {"agent": "calc", "timeout_seconds": 0}}"#;
        let text = lines(100, Some((50, wrong)));
        // What was sent before it broke off.
        let part: Vec<_> = text.lines().take(30).collect();
        let first = outcomes(&api, "group=nightly&lines=100", Some("k"), part.join("\n")).await;
        let all = outcomes(&api, "group=nightly&lines=100", Some("k"), text.clone()).await;
        let numbers: Vec<_> = all.iter().map(|outcome| outcome["line"].as_u64()).collect();
        assert_eq!(numbers, (1..=100).map(Some).collect::<Vec<_>>(), "in order");
        assert_eq!(all[..30], first, "the same jobs");
        for outcome in &all {
            let wanted = if outcome["line"] == 50 { 422 } else { 201 };
            assert_eq!(outcome["status"], wanted, "{outcome}");
        }
        assert_eq!(all[49]["detail"][0]["loc"], json!(["body", "spec", "timeout_seconds"]));
        assert_eq!(outcomes(&api, "group=nightly&lines=100", Some("k"), text).await, all);

        let shown = counted(&api, "nightly").await;
        let expected = json!({"state": "complete", "lines": 100, "received": 100, "jobs": 99,
            "waiting": 99, "refused": 1, "completed": 0, "statuses": {"created": 99}});
        for (key, value) in expected.as_object().expect("an object") {
            assert_eq!(shown[key], *value, "{key}: {shown}");
        }
        assert_eq!(shown["refusals"][0]["line"], 50);
        assert_eq!(shown["refusals"][0]["detail"], all[49]["detail"]);
        let listed = api.get(JOBS).await.body;
        assert_eq!(listed["pagination"]["total_results"], 99);

        // Mended, the line is taken, and what was said of it forgotten.
        let again = outcomes(&api, "group=nightly&first=50", Some("k"), line(50)).await;
        assert_eq!((again[0]["line"].as_u64(), &again[0]["status"]), (Some(50), &json!(201)));
        let shown = counted(&api, "nightly").await;
        assert_eq!((&shown["jobs"], &shown["refused"]), (&json!(100), &json!(0)), "{shown}");
        assert_eq!(shown["refusals"], json!([]));
    }
}

/// A request whose lines come one by one.
pub(super) struct Sending {
    lines: mpsc::Sender<io::Result<String>>,
    response: reqwest::Response,
    came: String,
}

impl Sending {
    pub(super) async fn start(api: &Harness, query: &str, token: Option<&str>) -> Self {
        let (lines, coming) = mpsc::channel(1);
        let coming =
            stream::unfold(coming, async |mut coming| Some((coming.recv().await?, coming)));
        let request = reqwest::Client::new().post(format!("{}{}?{query}", api.url, batches()));
        let request = token.into_iter().fold(request, |it, token| it.bearer_auth(token));
        let request = request.body(reqwest::Body::wrap_stream(coming));
        let response = request.send().await.expect("it answers while lines still come");
        assert_eq!(response.status(), 200);
        Self { lines, response, came: String::new() }
    }

    /// Sends a line; its outcome.
    pub(super) async fn send(&mut self, line: String) -> Value {
        self.lines.send(Ok(format!("{line}\n"))).await.expect("it is taken");
        let before = self.came.lines().count();
        while self.came.lines().count() == before || !self.came.ends_with('\n') {
            let chunk = self.response.chunk().await.expect("it goes on").expect("an outcome");
            self.came.push_str(str::from_utf8(&chunk).expect("text"));
        }
        let last = self.came.lines().last().expect("an outcome");
        serde_json::from_str(last).expect("JSON")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_t2_a_batch_whose_client_died_is_given_up_and_can_be_gone_on_with() {
    for api in furnished().await {
        let mut sending = Sending::start(&api, "group=half&lines=100&seal_after=3600", None).await;
        for number in 1..=40 {
            sending.send(line(number)).await;
        }
        let shown = counted(&api, "half").await;
        assert_eq!((&shown["state"], &shown["received"]), (&json!("open"), &json!(40)), "{shown}");
        sending.lines.send(Err(io::Error::other("killed"))).await.expect("it is there");
        drop(sending);

        // An empty request says again how long to wait.
        assert_eq!(outcomes(&api, "group=half&seal_after=1", None, String::new()).await.len(), 0);
        let shown = loop {
            let shown = counted(&api, "half").await;
            if shown["state"] != "open" {
                break shown;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(shown["state"], "incomplete", "{shown}");
        assert_eq!((&shown["received"], &shown["jobs"]), (&json!(40), &json!(40)), "{shown}");

        let rest = (41..=100).map(line).collect::<Vec<_>>().join("\n");
        assert_eq!(outcomes(&api, "group=half&first=41", None, rest).await.len(), 60);
        let shown = counted(&api, "half").await;
        assert_eq!((&shown["state"], &shown["jobs"]), (&json!("complete"), &json!(100)), "{shown}");
    }
}

/// Lines may come in parts, in any order and more than once, and jobs of theirs be deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_complete_once_each_of_its_lines_came() {
    for api in furnished().await {
        let state = async || {
            let shown = counted(&api, "parts").await;
            (shown["state"].clone(), shown["received"].clone(), shown["jobs"].clone())
        };
        let later = format!("\n\n{}\n{}\n\n", line(6), line(7));
        for _ in 0..2 {
            outcomes(&api, "group=parts&lines=8&first=4", None, later.clone()).await;
            assert_eq!(state().await, (json!("open"), json!(5), json!(2)));
        }
        // The run of blank ones before them, once more and longer.
        outcomes(&api, "group=parts&lines=8&first=3", None, "\n\n\n".to_owned()).await;
        assert_eq!(state().await, (json!("open"), json!(6), json!(2)));
        let wrong = format!("{}\n{{\n\n\n\n", line(1));
        let first = outcomes(&api, "group=parts&lines=8", None, wrong).await;
        assert_eq!(state().await, (json!("complete"), json!(8), json!(3)));
        outcomes(&api, "group=parts&lines=8&first=2", None, line(2)).await;
        assert_eq!(state().await, (json!("complete"), json!(8), json!(4)));
        let name = first[0]["job"]["name"].as_str().expect("a name");
        api.records.project(&story(id(&first[0]), &Outcome::Succeeded)).await.expect("it ended");
        api.send("DELETE", &format!("{JOBS}/{name}"), None).await.status_is(204);
        assert_eq!(state().await, (json!("complete"), json!(8), json!(3)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_is_complete_without_being_told_how_long_it_is() {
    let api = &furnished().await[0];
    let made = api.lines(&batches(), None, format!("\n{}\n\n{}\n\n", line(1), line(2))).await;
    let group = made.headers["x-errand-group"].to_str().expect("a name").to_owned();
    let shown = counted(api, &group).await;
    assert_eq!((&shown["state"], &shown["jobs"]), (&json!("complete"), &json!(2)), "{shown}");
    let listed = api.get(&batches()).await.body;
    assert_eq!(listed["data"][0]["group"], *group);
    let jobs = api.get(&format!("{}/{group}/jobs?lines=2,4,5", batches())).await.body;
    let lines: Vec<_> = jobs["data"].as_array().expect("a list").iter().collect();
    assert_eq!(lines.len(), 2, "{jobs}");
    assert_eq!((&lines[0]["line"], &lines[1]["line"]), (&json!(2), &json!(4)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_batch_are_counted_by_their_ends_and_found_by_its_name() {
    for api in furnished().await {
        let made = outcomes(&api, "group=nightly", None, lines(5, None)).await;
        outcomes(&api, "group=other", None, lines(2, None)).await;
        let (code, message) = (Code::Timeout, "it ran longer than 1 s".to_owned());
        let ends = [
            Outcome::Succeeded,
            Outcome::TimedOut { code, message: message.clone() },
            Outcome::Failed { code: Code::AgentFailed, message },
            Outcome::Cancelled { message: "cancelled".to_owned() },
        ];
        for (outcome, end) in made.iter().zip(&ends) {
            api.records.project(&story(id(outcome), end)).await.expect("it is taken in");
        }
        let shown = counted(&api, "nightly").await;
        let counts = ["completed", "failed", "cancelled", "waiting"].map(|key| &shown[key]);
        assert_eq!(counts, [&json!(1), &json!(2), &json!(1), &json!(1)], "{shown}");
        assert_eq!(shown["codes"], json!({"agent_failed": 1, "timeout": 1}));

        for at in [JOBS.to_owned(), format!("{AGENTS}/jobs/execute")] {
            let filter = r#"filter={"batch.group":"nightly"}"#;
            let listed = api.get(&format!("{at}?{filter}&sort=created_at")).await.body;
            assert_eq!(listed["pagination"]["total_results"], 5, "{listed}");
            let jobs = listed["data"].as_array().expect("a list").iter();
            let mut lines: Vec<_> = jobs.map(|job| job["batch"]["line"].as_u64()).collect();
            lines.sort_unstable();
            assert_eq!(lines, (1..=5).map(Some).collect::<Vec<_>>(), "{listed}");
        }

        // Another job takes the place of the one that timed out.
        let name = made[1]["job"]["name"].as_str().expect("a name");
        let path = format!("{JOBS}/{name}/rerun");
        let plain = api.post(&path, json!({})).await;
        assert!(plain.body["batch"].is_null(), "{}", plain.body);
        let again = api.post(&path, json!({"in_batch": true})).await;
        assert_eq!(again.body["batch"], json!({"group": "nightly", "line": 2}), "{}", again.body);
        let shown = counted(&api, "nightly").await;
        let counts = ["jobs", "failed", "waiting"].map(|key| &shown[key]);
        assert_eq!(counts, [&json!(5), &json!(1), &json!(2)], "{shown}");
        let jobs = api.get(&format!("{}/nightly/jobs?lines=2", batches())).await.body;
        assert_eq!(jobs["data"][0]["id"], again.body["id"], "{jobs}");
        let none = plain.body["name"].as_str().expect("a name");
        let none = api.post(&format!("{JOBS}/{none}/rerun"), json!({"in_batch": true})).await;
        assert_eq!(none.status, 409, "{}", none.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_batch_can_be_made_of_is_refused_before_any_line() {
    let api = &furnished().await[0];
    let refused = async |query: &str, key: Option<&str>| {
        let answer = api.lines(&format!("{}?{query}", batches()), key, line(1)).await;
        (answer.status, answer.body.to_string())
    };
    for query in ["group=A%20b", "lines=0", "first=x", "seal_after=-1"] {
        let (status, text) = refused(query, None).await;
        assert_eq!(status, 422, "{query}: {text}");
        let name = query.split('=').next().expect("a name");
        assert!(text.contains(&format!(r#""loc":["query","{name}"]"#)), "{text}");
    }
    assert_eq!(refused("", Some(&"k".repeat(250))).await.0, 422);
    outcomes(api, "group=gg", Some("one"), line(1)).await;
    let (status, text) = refused("group=gg", Some("two")).await;
    assert_eq!(status, 409, "{text}");
    assert!(text.contains("was begun under another Idempotency-Key"), "{text}");
    let elsewhere = batches().replace("default", "nowhere");
    assert_eq!(api.lines(&elsewhere, None, line(1)).await.status, 422);
    assert_eq!(api.get(&format!("{}/nobody", batches())).await.status, 404);
    for query in ["", "lines=", "lines=x", &format!("lines={}1", "1,".repeat(200))] {
        let answer = api.get(&format!("{}/gg/jobs?{query}", batches())).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_no_request_spoils_no_other() {
    let settings = Settings { max_input_bytes: 16, ..Settings::default() };
    let api = Harness::with(settings).await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    let of_key = |key: Value| {
        json!({"spec": {"agent": "calc", "input": "x"}, "idempotency_key": key}).to_string()
    };
    let long = format!("{{\"spec\": \"{}\"}}", "x".repeat(17 * 1024 * 1024));
    let text = [
        "{".to_owned(),
        "7".to_owned(),
        long,
        of_key(json!("mine")),
        of_key(json!("mine")),
        of_key(json!("no key")),
        of_key(json!(1)),
        line(1),
    ];
    let found = outcomes(&api, "group=odd", None, text.join("\n")).await;
    let statuses: Vec<_> = found.iter().map(|outcome| outcome["status"].as_u64()).collect();
    // Lines are judged at once: of two with one key, either may be the first.
    let later = if statuses[3] == Some(409) { 3 } else { 4 };
    let mut expected = [422, 422, 413, 201, 201, 422, 422, 201].map(Some);
    expected[later] = Some(409);
    assert_eq!(statuses, expected, "{found:?}");
    assert_eq!(found[0]["detail"][0]["type"], "json_invalid");
    let said = found[later]["detail"].as_str().expect("a sentence");
    let words = format!("which is not of line {} of batch 'odd'", later + 1);
    assert!(said.contains(&words), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_waits_for_room_in_the_queue() {
    let limits = Limits { intake_max_bytes: 64 * 1024, ..Limits::default() };
    let api = Harness::set_up(Setup { limits, ..Setup::default() }).await;
    api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    fill(&api, 62 * 1024).await;
    let sent = outcomes(&api, "group=full", None, lines(20, None));
    let room = async {
        // Nothing is recorded while there is none.
        let listed = api.get(JOBS).await.body;
        assert!(listed["pagination"]["total_results"].as_u64() < Some(20), "{listed}");
        api.broker.purge(StreamName::Intake, "jobs.submitted.>").await.expect("there is room");
    };
    let (found, ()) = tokio::join!(sent, room);
    assert!(found.iter().all(|outcome| outcome["status"] == 201), "{found:?}");
}
