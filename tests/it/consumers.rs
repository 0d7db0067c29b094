//! A consumer that was removed and made anew delivers every old fact as if it were new. No
//! agent and no action may run again for that.

use std::fs;
use std::time::Duration;

use serde_json::json;
use streams::broker::Broker;
use streams::phase::StepName;
use streams::topology;

use crate::harness::{Platform, eventually};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn re_created_consumers_run_no_agent_and_no_action_again() {
    let platform = Platform::start().await;
    let runs = platform.scratch().join("runs");
    let api = platform.api();
    let script = format!("umask 0; echo run >> {}; echo done", runs.display());
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let job = api.script(&script, json!({})).await;
        assert_eq!(job.ends(SOON).await["status"], "completed");
        jobs.push(job);
    }
    let actions = || platform.log().matches("post-run action").count();
    assert_eq!(actions(), 3, "each job's action ran once");

    let broker = platform.broker().await;
    let before = facts(&*broker, &jobs).await;
    let mut consumers = topology::shared_consumers();
    consumers.push(topology::step_consumer(StepName::Invoke, "default"));
    for consumer in &consumers {
        broker.remove_consumer(consumer).await.expect("it can be removed");
    }
    // The workers make them again; everything is then delivered and acknowledged once more.
    for consumer in &consumers {
        let what = format!("consumer {} has delivered everything", consumer.name);
        let settled = || async {
            let backlog = broker.backlog(consumer).await.ok().flatten()?;
            (backlog.waiting == 0 && backlog.unsettled == 0).then_some(())
        };
        eventually(&what, Duration::from_secs(90), settled).await;
    }
    assert_eq!(fs::read_to_string(&runs).expect("the agents ran"), "run\nrun\nrun\n");
    assert_eq!(actions(), 3, "no action ran again");
    assert_eq!(facts(&*broker, &jobs).await, before, "no fact was written again");
}

/// The sequences of all facts of some jobs.
async fn facts(broker: &dyn Broker, jobs: &[crate::harness::Job]) -> Vec<u64> {
    let mut sequences = Vec::new();
    for job in jobs {
        for (phase, fact) in job.facts(broker).await {
            sequences.push(fact.unwrap_or_else(|| panic!("no fact {phase}")).sequence);
        }
    }
    sequences
}
