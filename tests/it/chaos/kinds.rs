//! The jobs: of every kind that there is, submitted by a client who asks again until he knows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::harness::{Api, Job, script_agent};

const JOBS: &str = "/apis/jobs/v2/workspaces/default/jobs";
const EXECUTE: &str = "/apis/agents/v2/workspaces/default/jobs/execute";

/// How often a client asks again.
const LOOK: Duration = Duration::from_millis(500);

/// The post-run action of this run, a program.
const ACTION: &str = "chaos.note";

/// A kind of job: what its agent does, what its spec says besides, how it must end.
pub struct Kind {
    pub name: &'static str,
    script: &'static str,
    more: fn() -> Value,
    pub cancelled: bool,
    pub acts: bool,
    /// The agent writes the numbers up to here.
    pub lines: u32,
    pub status: &'static str,
    pub code: &'static str,
}

const SUCCESS: Kind = Kind {
    name: "success",
    script: "seq 1 100; echo kept > kept; head -c 200000 /dev/urandom > data",
    more: || json!({}),
    cancelled: false,
    acts: false,
    lines: 100,
    status: "completed",
    code: "",
};

pub const KINDS: [Kind; 7] = [
    SUCCESS,
    Kind { name: "sleeper", script: "seq 1 5; sleep 6; echo done", lines: 5, ..SUCCESS },
    Kind {
        name: "action",
        script: "seq 1 10; echo kept > kept",
        more: || json!({"post_run_action": {"kind": ACTION, "config": {}}}),
        acts: true,
        lines: 10,
        ..SUCCESS
    },
    Kind {
        name: "failure",
        script: "seq 1 10; exit 3",
        lines: 10,
        status: "error",
        code: "agent_failed",
        ..SUCCESS
    },
    Kind {
        name: "cancel",
        script: "sleep 600",
        cancelled: true,
        lines: 0,
        status: "cancelled",
        ..SUCCESS
    },
    Kind { name: "big log", script: "seq 1 40000", lines: 40_000, ..SUCCESS },
    Kind {
        name: "time limit",
        script: "seq 1 10; (sleep 600 &); sleep 600",
        more: || json!({"timeout_seconds": 3}),
        lines: 10,
        status: "error",
        code: "timeout",
        ..SUCCESS
    },
];

/// A job that has ended.
pub struct Ended {
    pub kind: &'static Kind,
    pub job: Job,
    pub record: Value,
    took: Duration,
}

/// Somebody who asks again when there is no answer, or one that is no fault of his.
#[derive(Clone)]
pub struct Client(Api);

impl Client {
    pub fn new(api: Api) -> Self {
        Self(api)
    }

    /// Uploads what the agents run, each of which says in a file outside that it did.
    pub async fn prepare(&self, ran: &Path) {
        for kind in &KINDS {
            let script = format!(
                "echo \"$NEMO_JOB_ID agent $NEMO_JOB_ATTEMPT_ID\" >> {}\n{}",
                ran.display(),
                kind.script
            );
            self.0.fileset(&fileset(kind), &[("agent.sh", &script)]).await;
        }
    }

    /// Submits the n-th job and waits for its end.
    pub async fn run(&self, n: usize, kind: &'static Kind, until: Instant) -> Ended {
        let name = format!("chaos-{n}");
        let mut spec = json!({
            "agent": script_agent(),
            "input": "",
            "workdir": {"base_workdir": fileset(kind)},
        });
        for (key, value) in (kind.more)().as_object().expect("an object") {
            spec[key] = value.clone();
        }
        let began = Instant::now();
        let submission = json!({"name": name, "spec": spec});
        let (status, answer) = self.ask(Method::POST, EXECUTE, Some(submission), until).await;
        // The name is taken by what was made before an answer was lost.
        let made = [StatusCode::CREATED, StatusCode::CONFLICT].contains(&status);
        assert!(made, "{name}: {status} {answer}");
        let path = format!("{JOBS}/{name}");
        if kind.cancelled {
            // At any time: before it runs, and when it does.
            sleep(LOOK * u32::try_from(n % 11).expect("it is small")).await;
            let cancel = format!("{path}/cancel");
            let (status, answer) = self.ask(Method::POST, &cancel, None, until).await;
            assert!(status.is_success(), "{name}: {status} {answer}");
        }
        loop {
            let (status, record) = self.ask(Method::GET, &path, None, until).await;
            assert_eq!(status, StatusCode::OK, "{name}: {record}");
            if ["completed", "error", "cancelled"]
                .contains(&record["status"].as_str().unwrap_or(""))
            {
                let job = Job::new(self.0.clone(), &record);
                return Ended { kind, job, record, took: began.elapsed() };
            }
            assert!(Instant::now() < until, "{name} has not ended: {record}");
            sleep(LOOK).await;
        }
    }

    /// Asks until there is an answer that the platform means.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        until: Instant,
    ) -> (StatusCode, Value) {
        loop {
            match self.0.try_ask(method.clone(), path, body.clone()).await {
                Some((StatusCode::SERVICE_UNAVAILABLE, answer)) => {
                    assert!(answer["detail"].is_string(), "{path}: a 503 that says nothing");
                }
                Some((status, answer)) => {
                    assert!(!status.is_server_error(), "{path}: {status} {answer}");
                    return (status, answer);
                }
                None => {}
            }
            assert!(Instant::now() < until, "{path} was never answered");
            sleep(LOOK).await;
        }
    }
}

fn fileset(kind: &Kind) -> String {
    format!("chaos-{}", kind.name.replace(' ', "-"))
}

/// Installs the action, which says in the same file that it ran.
pub fn install_action(directory: &Path, ran: &Path) {
    let own = directory.join("note");
    fs::create_dir_all(&own).expect("a directory");
    let manifest = json!({
        "kind": ACTION, "title": "Note", "description": "Notes that it ran.",
        "command": ["/bin/sh", "run.sh"],
    });
    fs::write(own.join("action.json"), manifest.to_string()).expect("a manifest");
    let script = format!(
        "sleep 1; echo \"$NEMO_JOB_ID action 1\" >> {}; echo noted > \"$ERRAND_RESULTS/noted.txt\"",
        ran.display()
    );
    fs::write(own.join("run.sh"), script).expect("a program");
}

pub fn print_table(ended: &[Ended]) {
    let mut rows = BTreeMap::<(&str, String), Vec<Duration>>::new();
    for Ended { kind, record, took, .. } in ended {
        let code = record["error_details"]["code"].as_str().unwrap_or_default();
        let end = format!("{} {code}", record["status"].as_str().unwrap_or_default());
        rows.entry((kind.name, end)).or_default().push(*took);
    }
    if let Some(Ended { job, record, took, .. }) = ended.iter().max_by_key(|ended| ended.took) {
        println!("\nslowest: {}, {took:.1?}, {}", job.name, record["phase_times"]);
    }
    println!("\n{:<12}{:<24}{:>6}{:>10}{:>10}", "kind", "end", "jobs", "median s", "p95 s");
    for ((kind, end), mut times) in rows {
        times.sort();
        let at = |part: f64| times[((times.len() - 1) as f64 * part).ceil() as usize].as_secs_f64();
        let (count, median, p95) = (times.len(), at(0.5), at(0.95));
        println!("{kind:<12}{end:<24}{count:>6}{median:>10.1}{p95:>10.1}");
    }
}
