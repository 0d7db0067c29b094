//! Faults that are planted in a world, so that each invariant is seen to be able to fail. They are
//! in what this simulation puts around the chain, never in the chain.

use tokio::time::Duration;

use crate::calls::{Call, Fault, Op, When};
use crate::fixture::Fixture;
use crate::invariants;
use crate::plan::{Agent, Event, Follows, Plan};
use crate::play::play;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// The queue says that it took a fact, and has not.
    LostFact,
    /// The queue takes a second fact on a subject.
    SecondFact,
    /// What is told as acted is not what was invoked.
    OtherStory,
    /// The queue has two last facts, and they differ.
    OtherEnd,
    /// A worker does not see a runner that another one has started, and nothing stands in its way.
    NoStartGate,
    /// One worker takes claims over at once.
    Impatience,
    /// A message has another id each time.
    OtherMessage,
    /// An object is gone as soon as it is listed.
    LostObject,
    /// A worker is told that it closed a job that was cancelled before.
    DeafEnds,
    /// An acknowledgement is confirmed and forgotten.
    DeafAcks,
    /// Batches of a log are stored twice.
    LogTwice,
}

fn caught(planted: Planted, plan: Plan, invariant: &str) {
    let fixture = Fixture::new();
    let sound = play(plan.clone(), None, &fixture, true);
    assert!(sound.wrong.is_empty(), "without the fault: {}", sound.report());
    let played = play(plan, Some(planted), &fixture, true);
    let named = played.wrong.iter().any(|wrong| wrong.invariant == invariant);
    assert!(named, "{planted:?} goes unseen by '{invariant}': {}", played.report());
}

/// A quiet plan in which this strikes whichever worker makes the call first.
fn with(places: usize, follows: Follows, op: Op, nth: u32, fault: Fault) -> Plan {
    let mut plan = Plan::quiet(places, follows);
    for by in 0..plan.workers.len() {
        plan.faults.insert(Call { by, op, job: Some(0), nth }, fault);
    }
    plan
}

#[test]
fn a_job_that_does_not_end_is_caught() {
    caught(Planted::LostFact, Plan::quiet(1, Follows::Nothing), invariants::EVERY_JOB_ENDS);
}

#[test]
fn a_second_fact_is_caught() {
    let late = Fault::Fails(When::After);
    let plan = with(1, Follows::Nothing, Op::Publish, 2, late);
    caught(Planted::SecondFact, plan, invariants::SIX_FACTS);
}

#[test]
fn facts_that_contradict_each_other_are_caught() {
    caught(Planted::OtherStory, Plan::quiet(1, Follows::Nothing), invariants::ONE_STORY);
}

#[test]
fn a_status_that_depends_on_the_order_is_caught() {
    caught(Planted::OtherEnd, Plan::quiet(1, Follows::Nothing), invariants::STATUS);
}

#[test]
fn a_second_start_is_caught() {
    let plan = with(1, Follows::Nothing, Op::Look, 9, Fault::Crash(When::Before));
    caught(Planted::NoStartGate, plan, invariants::ONE_START);
}

#[test]
fn a_second_agent_beside_the_first_is_caught() {
    let mut plan = Plan::quiet(2, Follows::Nothing);
    let long = Agent::Succeeds(Duration::from_secs(100));
    let job = &mut plan.jobs[0];
    (job.agents, job.limit, job.max_attempts) = ([long, long], Duration::from_secs(600), 2);
    // The patient worker is given the job, since the other one comes later, and is then cut off.
    for (worker, from, long) in [(1, 0, 3), (0, 5, 60)] {
        let away = Event::QueueAway { of: Some(worker), long: Duration::from_secs(long) };
        plan.events.push((Duration::from_secs(from), away));
    }
    caught(Planted::Impatience, plan, invariants::ONE_AGENT);
}

#[test]
fn a_second_action_is_caught() {
    let plan = with(1, Follows::Message, Op::Send, 1, Fault::Crash(When::After));
    caught(Planted::OtherMessage, plan, invariants::ONE_ACTION);
}

#[test]
fn a_result_that_is_listed_and_gone_is_caught() {
    caught(Planted::LostObject, Plan::quiet(1, Follows::Nothing), invariants::LISTED);
}

#[test]
fn a_cancelled_job_that_completes_is_caught() {
    let mut plan = Plan::quiet(1, Follows::Nothing);
    plan.events.push((Duration::from_millis(700), Event::Cancel(0)));
    caught(Planted::DeafEnds, plan, invariants::REASONS);
}

#[test]
fn what_is_left_is_caught() {
    caught(Planted::DeafAcks, Plan::quiet(1, Follows::Nothing), invariants::NOTHING_LEFT);
}

#[test]
fn a_log_that_says_things_twice_is_caught() {
    caught(Planted::LogTwice, Plan::quiet(1, Follows::Nothing), invariants::LOG);
}
