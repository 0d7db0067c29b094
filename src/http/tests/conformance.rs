//! The reference's own tests of its jobs API, restated: a test has the name of its case, so that
//! the two can be laid side by side. Where a case drives steps and tasks by requests, which only
//! the platform may do here, the job's facts drive them instead.

mod actions;
mod cancel;
mod jobs_api;
mod lists;
mod logs;
mod steps;
mod submission;

use serde_json::{Value, json};
use streams::outcome::Outcome;
use streams::phase::Phase;

use super::harness::Harness;
use super::{AGENTS, JOBS, agent};
use crate::records::tests::job as story;
use crate::records::{Change, Job, News};

/// The execute collection.
fn execute() -> String {
    format!("{AGENTS}/jobs/execute")
}

/// Submits a job of a registered agent.
async fn submit(api: &Harness, name: &str) -> Value {
    if api.get(&format!("{AGENTS}/agents/calc")).await.status == 404 {
        api.post(&format!("{AGENTS}/agents"), agent("calc")).await.status_is(201);
    }
    let body = json!({"name": name, "spec": {"agent": "calc", "input": "x"}});
    let made = api.post(&execute(), body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body
}

/// Lets a job go on: what its facts and its worker say.
async fn tell(api: &Harness, changes: &[Change]) {
    api.records.project(changes).await.expect("the facts are projected");
}

/// The facts up to a phase, with the agent seen to run if it comes that far.
fn until(job: &Job, phase: Phase, end: &Outcome) -> Vec<Change> {
    let facts = Phase::CHAIN.into_iter().take_while(|it| *it <= phase);
    let mut changes: Vec<_> = facts.map(|it| story::fact(job.id, it, end)).collect();
    if phase >= Phase::Staged {
        changes.insert(3, story::running(job.id, 1, 21, 0));
    }
    changes
}

/// The facts that follow once an agent that was started has ended so.
fn rest(job: &Job, end: &Outcome) -> Vec<Change> {
    let facts = [Phase::Invoked, Phase::Acted, Phase::Archived].into_iter();
    let fact = |phase| {
        let mut change = story::fact(job.id, phase, end);
        if let News::Fact(proof) = &mut change.news {
            proof.outcome = Some(end.clone());
        }
        change
    };
    facts.map(fact).collect()
}

/// Asks for a record of the generic collection.
async fn get(api: &Harness, rest: &str) -> Value {
    let answer = api.get(&format!("{JOBS}/{rest}")).await;
    assert_eq!(answer.status, 200, "{rest}: {}", answer.body);
    answer.body
}

/// Asks something of a job.
async fn ask(api: &Harness, name: &str, what: &str) -> Value {
    let answer = api.post(&format!("{JOBS}/{name}/{what}"), json!({})).await;
    assert_eq!(answer.status, 200, "{what} {name}: {}", answer.body);
    answer.body
}
