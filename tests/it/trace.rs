//! Traces: one a job, whoever works on it, sent to a collector of the test's own.

mod collector;
mod roles;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use streams::broker::{Broker, Publication, Published};
use streams::envelope::Envelope;
use streams::fact::Submitted;
use streams::id::JobId;

use crate::harness::{Api, Database, Job, Options, Parts, Platform, script_agent};
use collector::{Collector, Sent};

const LATER: Duration = Duration::from_secs(60);

const CHAIN: [&str; 6] = ["submitted", "resolved", "staged", "invoked", "acted", "archived"];

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SUBMITTER: &str = "00f067aa0ba902b7";

/// Submits a job of this script from the middle of a trace, or of what is none.
async fn submit(api: &Api, script: &str, traceparent: &str) -> Job {
    let fileset = format!("fs-{}", uuid::Uuid::now_v7().simple());
    api.fileset(&fileset, &[("agent.sh", script)]).await;
    let spec = json!({
        "agent": script_agent(),
        "input": "",
        "workdir": {"base_workdir": fileset},
        "max_attempts": 2,
    });
    api.submit_with(("traceparent", traceparent), spec).await
}

fn traced(collector: &Collector) -> Options {
    let mut options = Options::default();
    options.env.push(("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), collector.url.clone()));
    options
}

/// All spans of a job, once there are a root and as many phases as jobs have.
async fn whole(collector: &Collector, trace: &str) -> Vec<Sent> {
    let is_whole = |spans: &[Sent]| {
        let (of_job, roots): (Vec<_>, Vec<_>) = spans
            .iter()
            .filter(|it| it.trace == trace && (it.name == "job" || it.says("phase").is_some()))
            .partition(|it| it.name != "job");
        of_job.len() >= CHAIN.len() && !roots.is_empty()
    };
    collector.wait_for(is_whole).await;
    collector.spans().into_iter().filter(|span| span.trace == trace).collect()
}

#[track_caller]
fn one<'s>(spans: &'s [Sent], name: &str) -> &'s Sent {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    let [span] = found[..] else { panic!("there are {} spans '{name}': {spans:#?}", found.len()) };
    span
}

/// Six phases under one root, in their order, whoever told of them.
#[track_caller]
fn has_six_phases(spans: &[Sent]) {
    let root = one(spans, "job");
    let mut phases: Vec<_> = spans.iter().filter(|span| span.says("phase").is_some()).collect();
    phases.sort_by_key(|span| span.to);
    let words: Vec<_> = phases.iter().filter_map(|span| span.says("phase")).collect();
    assert_eq!(words, CHAIN, "{spans:#?}");
    for span in phases {
        assert_eq!(span.parent, root.id, "{}", span.name);
        assert!(span.from <= span.to && span.to <= root.to, "{}", span.name);
    }
    let mut ids: Vec<_> = spans.iter().map(|span| &span.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "each has an id of its own");
}

#[tokio::test]
async fn a_trace_has_all_six_phases_under_one_root() {
    let collector = Collector::start().await;
    let platform = Platform::with(traced(&collector)).await;
    let job = platform.api().script("echo done", json!({})).await;
    assert_eq!(job.ends(LATER).await["status"], "completed");
    // Nobody's trace was joined, so it has the job's own id.
    let spans = whole(&collector, &job.id.to_string().replace('-', "")).await;
    has_six_phases(&spans);
    let (root, invoke) = (one(&spans, "job"), one(&spans, "invoke"));
    assert_eq!(root.parent, "", "nobody is above it");
    assert_eq!(root.says("outcome"), Some("succeeded"));
    assert_eq!(one(&spans, "queue").parent, root.id);
    for part in ["agent", "save"] {
        assert_eq!(one(&spans, part).parent, invoke.id, "{part}");
    }
    assert_eq!(root.role, "up");
}

/// The API and each step are processes of their own, and the one of the agent is killed meanwhile.
#[tokio::test]
async fn a_trace_is_one_over_processes_and_restarts() {
    let collector = Collector::start().await;
    let parts = Parts::on(Database::Sqlite).await;
    let otlp = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url)];
    let server = parts.server_with(&otlp);
    let url = [("telemetry.otlp_endpoint", &*collector.url)];
    let _others = parts.worker_at("others", "resolve,stage,act,archive", &url);
    let mut worker = parts.worker_at("agents", "invoke", &url);
    let scratch = parts.lender.scratch();
    let (runs, go) = (scratch.join("runs"), scratch.join("go"));
    let script = format!(
        "echo run >> {}; until [ -e {} ]; do sleep 0.05; done; echo done",
        runs.display(),
        go.display()
    );
    let job = server.api().script(&script, json!({})).await;
    job.reaches("active", LATER).await;
    worker.kill();
    assert!(worker.start_again(), "it comes back");
    std::fs::write(&go, "").expect("it is written");
    assert_eq!(job.ends(LATER).await["status"], "completed");
    let spans = whole(&collector, &job.id.to_string().replace('-', "")).await;
    has_six_phases(&spans);
    let roles: Vec<_> = ["submit", "invoke"].map(|name| one(&spans, name).role.clone()).into();
    assert_eq!(roles, ["serve", "worker"]);
    assert_eq!(std::fs::read_to_string(runs).expect("it ran"), "run\n");
}

/// The first attempt is lost and the second one succeeds.
#[tokio::test]
async fn case_p1_a_job_is_part_of_its_submitters_trace_and_a_retry_has_a_link() {
    let collector = Collector::start().await;
    let platform = Platform::with(traced(&collector)).await;
    let api = platform.api();
    let first = platform.scratch().join("first");
    let script = format!(
        "echo $TRACEPARENT > told; if mkdir {}; then echo attempt runs; sleep 31161; fi; echo done",
        first.display()
    );
    let job = submit(&api, &script, &format!("00-{TRACE}-{SUBMITTER}-01")).await;
    platform.kill_supervisor(&job, 1).await;
    let record = job.ends(LATER).await;
    assert_eq!(record["status"], "completed", "{record}");

    let spans = whole(&collector, TRACE).await;
    has_six_phases(&spans);
    assert_eq!(one(&spans, "job").parent, SUBMITTER);
    for name in ["submit", "queue", "stage", "save"] {
        assert_eq!(one(&spans, name).trace, TRACE);
    }
    let mut agents: Vec<_> = spans.iter().filter(|span| span.name == "agent").collect();
    agents.sort_by_key(|span| span.from);
    let [lost, again] = agents[..] else { panic!("two attempts: {agents:#?}") };
    assert_eq!(lost.links, [""; 0]);
    assert_eq!(again.links, [lost.id.as_str()], "it is linked to the one before");
    assert!(lost.failed && !again.failed);
    // The agent was told where it is, so that its own spans are parts of the attempt's.
    let told = job.directory("output_workdir").await;
    let told = std::fs::read_to_string(told.path().join("told")).expect("it is there");
    assert_eq!(told.trim(), format!("00-{TRACE}-{}-01", again.id));

    for odd in
        ["nonsense", &format!("00-{TRACE}-{SUBMITTER}"), &format!("ff-{TRACE}-{SUBMITTER}-01")]
    {
        let job = submit(&api, "echo done", odd).await;
        assert_eq!(job.ends(LATER).await["status"], "completed", "ignored, and not refused");
        has_six_phases(&whole(&collector, &job.id.to_string().replace('-', "")).await);
    }
}

/// The header of the message says where its submitter is, and nothing in it does.
#[tokio::test]
async fn a_submission_by_a_fact_is_part_of_the_trace_of_its_header() {
    let collector = Collector::start().await;
    let platform = Platform::with(traced(&collector)).await;
    let api = platform.api();
    api.fileset("given", &[("agent.sh", "echo done")]).await;
    let spec = json!({
        "agent": script_agent(),
        "input": "",
        "workdir": {"base_workdir": "given"},
    });
    let submitted = Envelope {
        job: JobId::new(),
        workspace: "default".to_owned(),
        at: Timestamp::now(),
        traceparent: None,
        fact: Submitted { spec: Some(spec), name: None, record: None },
    };
    let publication = submitted.publication().expect("it has a form");
    let traceparent = Some(format!("00-{TRACE}-{SUBMITTER}-01"));
    let published =
        platform.broker().await.publish(Publication { traceparent, ..publication }).await;
    assert!(matches!(published, Ok(Published::Stored(_))), "{published:?}");
    let spans = whole(&collector, TRACE).await;
    has_six_phases(&spans);
    assert_eq!(one(&spans, "job").parent, SUBMITTER);
    assert_eq!(one(&spans, "job").says("outcome"), Some("succeeded"));
    assert_eq!(one(&spans, "submit").says("via"), Some("nats"));
}
