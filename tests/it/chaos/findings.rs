//! What is wrong when all is over. Everything is looked at, and all that is found is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use streams::broker::Broker;
use tokio::time::{Instant, sleep};

use super::kinds::Ended;
use crate::faulty_store::left_behind;
use crate::harness::processes_of_runs;
use crate::soak::names;

/// Directories of runs stay for half a minute after the last fact, and the janitor looks as often;
/// what is unfinished in the store is swept as often.
const CLEARED: Duration = Duration::from_secs(180);

pub async fn of(
    ended: &[Ended],
    ran: &Path,
    broker: &dyn Broker,
    places: &[PathBuf],
    objects: &Path,
) -> Vec<String> {
    let ran = fs::read_to_string(ran).expect("it is there");
    let mut found = Vec::new();
    for ended in ended {
        let mut wrong = Vec::new();
        end(ended, &mut wrong);
        runs(ended, &ran, &mut wrong);
        results(ended, &mut wrong).await;
        log(ended, &mut wrong).await;
        for (phase, fact) in ended.job.facts(broker).await {
            if fact.is_none() {
                wrong.push(format!("no fact {phase}"));
            }
        }
        let (name, id, kind) = (&ended.job.name, ended.job.id, ended.kind.name);
        found.extend(wrong.into_iter().map(|wrong| format!("{name} ({id}, {kind}): {wrong}")));
    }
    let ids: Vec<_> = ended.iter().map(|ended| ended.job.id.to_string()).collect();
    let left = || {
        let processes = processes_of_runs().into_iter();
        let ours = processes.filter(|(_, run)| ids.iter().any(|id| run.starts_with(id)));
        let processes = ours.map(|(pid, run)| format!("process {pid} of run {run} is left"));
        let directories = places.iter().flat_map(|place| names(place));
        let directories = directories.map(|name| format!("run directory {name} is left"));
        let uploads = left_behind(objects).into_iter().map(|it| format!("upload {it} is left"));
        processes.chain(directories).chain(uploads).collect::<Vec<_>>()
    };
    let began = Instant::now();
    while !left().is_empty() && began.elapsed() < CLEARED {
        sleep(Duration::from_millis(500)).await;
    }
    found.extend(left());
    found
}

fn end(ended: &Ended, wrong: &mut Vec<String>) {
    let (kind, record) = (ended.kind, &ended.record);
    let code = record["error_details"]["code"].as_str().unwrap_or_default();
    if record["status"] != kind.status || (!kind.code.is_empty() && code != kind.code) {
        wrong.push(format!("ended as {} {}", record["status"], record["error_details"]));
    }
}

/// An agent that was cancelled may not have begun; all others ran, each once.
fn runs(ended: &Ended, ran: &str, wrong: &mut Vec<String>) {
    let times = |what: &str| {
        let begins = format!("{} {what} ", ended.job.name);
        ran.lines().filter(|line| line.starts_with(&begins)).count()
    };
    let (agents, actions) = (times("agent"), times("action"));
    let least = usize::from(!ended.kind.cancelled);
    if agents > 1 || agents < least {
        wrong.push(format!("its agent ran {agents} times"));
    }
    if actions != usize::from(ended.kind.acts) {
        wrong.push(format!("its action ran {actions} times"));
    }
}

async fn results(ended: &Ended, wrong: &mut Vec<String>) {
    let listed = ended.job.results().await;
    for result in &listed {
        let name = result["name"].as_str().unwrap_or_default();
        let bytes = ended.job.download(name).await;
        let is = json!({"size": bytes.len(), "sha256": hex::encode(Sha256::digest(&bytes))});
        for key in ["size", "sha256"] {
            if result[key] != is[key] {
                wrong.push(format!("result {name} has {key} {}, listed is {result}", is[key]));
            }
        }
    }
    let is_listed = |name: &str| listed.iter().any(|result| result["name"] == name);
    // One that was cancelled may have come to nothing at all.
    let mut due =
        if ended.kind.cancelled { vec![] } else { vec!["input_workdir", "output_workdir"] };
    if ended.kind.acts {
        due.push("noted.txt");
    }
    for name in due.into_iter().filter(|name| !is_listed(name)) {
        wrong.push(format!("result {name} is not listed"));
    }
}

/// Every line is there once, and in order.
async fn log(ended: &Ended, wrong: &mut Vec<String>) {
    let numbers: Vec<u32> =
        ended.job.log().await.iter().filter_map(|line| line.parse().ok()).collect();
    if !numbers.iter().copied().eq(1..=ended.kind.lines) {
        let (count, lines) = (numbers.len(), ended.kind.lines);
        wrong.push(format!("its log has {count} lines of {lines}, or not in their order"));
    }
}
