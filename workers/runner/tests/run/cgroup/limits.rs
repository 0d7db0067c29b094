//! What a limit does, and how the outcome speaks of it.

use std::time::Instant;

use errand_runner::{End, Failure, Limits, LogStream};

use super::{MIB, file, is_v2};
use crate::scene::{Done, Scene};

const MEMORY: Limits =
    Limits { cpu_millis: None, memory_bytes: Some(64 * MIB), processes: Some(200) };

/// Takes memory until there is no more: a line without an end is kept whole.
const GREEDY: &str = "tail /dev/zero";

fn assert_oom(done: &Done) {
    assert_eq!(done.outcome.failure, Some(Failure::OomKilled), "{:#?}", done.outcome);
    let message = &done.outcome.message;
    assert!(message.starts_with("killed for want of memory: limit 64 MiB, peak 6"), "{message}");
    assert!(done.outcome.interrupted);
    assert_struck(done);
    done.assert_group_is_gone();
}

fn assert_struck(done: &Done) {
    let said = done.texts(LogStream::Platform);
    let struck = "Processes of the agent were killed for want of memory";
    assert!(said.iter().any(|line| line.starts_with(struck)), "{said:#?}");
}

#[test]
fn an_agent_that_takes_too_much_memory_is_killed_for_it() {
    let done = Scene::new(&format!("echo words > begun; exec {GREEDY}")).in_group(MEMORY).run();
    assert_oom(&done);
    assert_eq!(done.workspace_text("begun"), "words\n");
    match &done.outcome.run_result {
        Some(result) => {
            assert_eq!(done.outcome.end, End::Failed);
            assert_eq!(result["error"]["code"], "oom_killed");
            let message = result["error"]["message"].as_str().expect("a message");
            assert!(message.ends_with("; killed by signal 9"), "{message}");
        }
        // The kernel may choose the adapter, and on version 2 it takes all of the run.
        None => {
            assert_eq!(done.outcome.end, End::Raised);
            assert_eq!(done.error()["code"], "oom_killed");
            assert_eq!(done.error()["timed_out"], false);
        }
    }
}

#[test]
fn a_child_that_was_killed_for_memory_is_why_an_agent_failed() {
    let done = Scene::new(&format!("{GREEDY}; exit 9")).in_group(MEMORY).run();
    assert_oom(&done);
}

#[test]
fn an_agent_that_outlives_the_memory_of_a_child_may_succeed() {
    let scene = Scene::new(&format!("{GREEDY}; echo done; exit 0")).in_group(MEMORY);
    let takes_all = is_v2(scene.group());
    let done = scene.run();
    if takes_all {
        // `memory.oom.group`: there is no agent that could go on.
        assert_oom(&done);
    } else {
        done.assert_end(End::Succeeded, None);
        assert_struck(&done);
        done.assert_group_is_gone();
    }
}

#[test]
fn a_cancel_after_a_child_was_killed_for_memory_stays_one() {
    let scene = Scene::new(&format!("{GREEDY}; : > struck; sleep 600")).in_group(MEMORY);
    if is_v2(scene.group()) {
        return assert_oom(&scene.run());
    }
    let child = scene.start();
    scene.await_file("struck");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    assert_struck(&done);
    done.assert_group_is_gone();
}

#[test]
fn a_limit_of_memory_is_none_that_swap_gets_around() {
    let scene = Scene::new(": > begun; while [ ! -e go ]; do sleep 0.01; done; echo done");
    let scene = scene.in_group(MEMORY);
    let group = scene.group();
    let limit = (64 * MIB).to_string();
    let (memory, swap, none) = if is_v2(group) {
        ("memory.max", "memory.swap.max", "0".to_owned())
    } else {
        ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit.clone())
    };
    assert_eq!(file(group, memory).as_deref(), Some(limit.as_str()));
    // A kernel without swap has no file for it.
    assert_eq!(file(group, swap).unwrap_or_else(|| none.clone()), none);
    let child = scene.start();
    scene.await_file("begun");
    let members = scene.group().members();
    assert!(members.len() >= 3, "host, adapter and agent: {members:?}");
    assert!(!members.iter().any(|pid| pid.as_raw_pid() == child.id().cast_signed()));
    std::fs::write(scene.workspace("go"), "").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Succeeded, None);
    done.assert_group_is_gone();
}

#[test]
fn half_a_processor_is_what_all_processes_together_have() {
    let spin = "spin() { while :; do :; done; }\n\
        spin & a=$!; spin & b=$!; sleep 3; kill $a $b; wait; times > used; tail -n 1 used";
    let limits = Limits { cpu_millis: Some(500), ..Limits::default() };
    let began = Instant::now();
    let done = Scene::new(spin).in_group(limits).run();
    let took = began.elapsed().as_secs_f64();
    done.assert_end(End::Succeeded, None);
    // Two loops would have all of a processor at least, however loaded the machine is.
    let response = done.result()["response"].as_str().expect("a response").to_owned();
    let used: f64 = response.split_whitespace().map(seconds).sum();
    assert!(used > 0.1 && used < 0.6 * took, "{used} s of {took} s: {response}");
}

/// Reads `0m1.50s`.
fn seconds(time: &str) -> f64 {
    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    number(minutes) * 60.0 + number(seconds)
}

#[test]
fn a_limit_that_struck_the_number_of_processes_is_said() {
    let script = "i=0; while [ $i -lt 60 ]; do sleep 300 & i=$((i + 1)); done; echo done";
    let limits = Limits { processes: Some(30), ..Limits::default() };
    let done = Scene::new(script).in_group(limits).run();
    assert_ne!(done.outcome.end, End::Succeeded, "a shell that cannot fork gives up");
    let said = done.texts(LogStream::Platform);
    let struck = "The agent may have 30 processes and threads at a time and was refused more";
    assert!(said.iter().any(|line| line.starts_with(struck)), "{said:#?}");
    done.assert_group_is_gone();
}
