//! A job and its story, for these tests and the projector's.

use serde_json::{Map, Value, json};
use streams::attempt::AttemptEnd;
use streams::code::Code;
use streams::fact::{ResultKind, Run, SavedResult, Usage};
use streams::id::{Attempt, JobId};
use streams::outcome::Outcome;
use streams::phase::Phase;
use streams::snapshot::{Action, AgentSnapshot, Snapshot, Spec};
use workers::store::Sums;

use crate::records::{Admitted, Change, Job, Listed, NewJob, News, Proof, Records, Select};

/// A second of the story's clock.
pub(crate) fn second(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_800_000_000 + second).expect("within the calendar")
}

pub(crate) fn snapshot(name: &str) -> Snapshot {
    Snapshot {
        name: name.to_owned(),
        input: "Count the words.".to_owned(),
        context: Map::new(),
        timeout_seconds: 60.0,
        idle_timeout_seconds: None,
        queue_limit: None,
        max_attempts: 1,
        expect_files: Vec::new(),
        notify: None,
        spec: Spec {
            request: json!({"agent": "counter"}),
            agent: AgentSnapshot {
                name: "counter".to_owned(),
                workspace: "default".to_owned(),
                config: json!({"name": "counter"}),
                config_format: "nemo-agents-spec-v1".to_owned(),
            },
            agent_ref: Some("default/counter".to_owned()),
            workdir: None,
            compute: None,
            secrets: [("KEY".to_owned(), "key".to_owned())].into(),
            post_run_action: Action { kind: "agents.noop".to_owned(), config: Map::new() },
            context: None,
        },
        base: None,
        mounts: Vec::new(),
        ethos: None,
        image: None,
        resources: Default::default(),
    }
}

pub(crate) fn new_job(name: &str) -> NewJob {
    NewJob {
        id: JobId::new(),
        name: name.to_owned(),
        workspace: "default".to_owned(),
        project: None,
        description: None,
        source: "nemo-agents-plugin-execute".to_owned(),
        snapshot: Ok(snapshot(name)),
        request: json!({"agent": "counter"}),
        agent_ref: Some("default/counter".to_owned()),
        ownership: None,
        custom_fields: None,
        output_location: None,
        submission: None,
        rerun_of: None,
        batch: None,
        created_at: second(0),
    }
}

/// Admits a job that nobody knows yet.
pub(crate) async fn admit(records: &Records, name: &str) -> Job {
    match records.jobs().admit(new_job(name)).await {
        Ok(Admitted::Fresh(job)) => job,
        other => panic!("{name} was not admitted: {other:?}"),
    }
}

pub(crate) fn saved(name: &str) -> SavedResult {
    let object = Sums::of(b"archive").object(&format!("jobs/{name}"));
    SavedResult {
        name: name.to_owned(),
        kind: ResultKind::Directory,
        object,
        complete: true,
        skipped: Vec::new(),
        skipped_more: 0,
        changed_while_saved: Vec::new(),
        secret_detected: Vec::new(),
        unsearched: false,
        output_changes: None,
        saved_at: second(25),
    }
}

pub(crate) fn run() -> Run {
    Run {
        attempt: Attempt(2),
        place: "host".to_owned(),
        started_at: second(30),
        invoked_at: Some(second(31)),
        ended_at: second(39),
        usage: Some(Usage { input_tokens: 812, output_tokens: 96 }),
        log_lines: 3,
    }
}

/// What became of the attempts, of which the second counts.
pub(crate) fn attempts() -> Vec<AttemptEnd> {
    let (code, message) = (Code::WorkerLost, "the agent was lost".to_owned());
    let end = |attempt, started, ended, outcome| AttemptEnd {
        attempt: Attempt(attempt),
        place: "host".to_owned(),
        started_at: second(started),
        ended_at: second(ended),
        outcome,
    };
    vec![end(1, 21, 29, Outcome::Failed { code, message }), end(2, 30, 39, Outcome::Succeeded)]
}

/// The fact of a phase, in a job whose agent succeeded and that ended so.
pub(crate) fn fact(job: JobId, phase: Phase, end: &Outcome) -> Change {
    let (outcome, run, results) = match phase {
        Phase::Submitted | Phase::Resolved => (None, None, vec![]),
        Phase::Staged => (None, None, vec![saved("input_workdir")]),
        Phase::Invoked => {
            (Some(Outcome::Succeeded), Some(run()), vec![saved("output_workdir"), saved("report")])
        }
        Phase::Acted => {
            let again = SavedResult { complete: false, ..saved("report") };
            (Some(end.clone()), None, vec![again, saved("summary")])
        }
        Phase::Archived => (Some(end.clone()), None, vec![]),
    };
    let at = second(10 * i64::try_from(phase.rank()).expect("there are few phases"));
    let attempts = if phase == Phase::Invoked { attempts() } else { Vec::new() };
    let news = News::Fact(Proof { phase, outcome, run, attempts, results });
    Change { job, workspace: "default".to_owned(), at, redelivered: false, news }
}

/// The news that an attempt runs, with a detail that changes.
pub(crate) fn running(job: JobId, attempt: u32, at: i64, turn: u32) -> Change {
    let details = Map::from_iter([("turn".to_owned(), Value::from(turn))]);
    let news = News::Running { attempt: Attempt(attempt), details };
    Change { job, workspace: "default".to_owned(), at: second(at), redelivered: false, news }
}

/// The news that a worker has not what the agent needs.
pub(crate) fn waiting(job: JobId, at: i64) -> Change {
    let details = Map::from_iter([("waiting_for".to_owned(), Value::from("adapter 'x'"))]);
    let (workspace, at, news) = ("default".to_owned(), second(at), News::Waiting { details });
    Change { job, workspace, at, redelivered: false, news }
}

/// All that is ever said of a job, in the order in which it happens.
pub(crate) fn story(job: JobId, end: &Outcome) -> Vec<Change> {
    let mut story: Vec<_> = Phase::CHAIN.into_iter().map(|phase| fact(job, phase, end)).collect();
    story.insert(3, waiting(job, 20));
    let news = [(1, 21, 0), (1, 22, 10), (2, 31, 0), (2, 32, 40), (2, 33, 90)];
    story.splice(4..4, news.map(|(attempt, at, turn)| running(job, attempt, at, turn)));
    story
}

pub(crate) fn action_failed() -> Outcome {
    Outcome::Failed { code: Code::ActionFailed, message: "the webhook answered 500".to_owned() }
}

/// The jobs that a list names, whole.
pub(crate) async fn listed(
    records: &Records,
    workspace: Option<&str>,
    asked: &Select,
) -> Listed<Job> {
    let Listed { items, total, next } =
        records.jobs().list(workspace, asked).await.expect("they are listed");
    let ids: Vec<_> = items.iter().map(|it| it.id).collect();
    let items = records.jobs().several(&ids).await.expect("they are read");
    Listed { items, total, next }
}
