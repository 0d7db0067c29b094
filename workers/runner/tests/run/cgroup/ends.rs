//! FC-B: whatever the agent does, nothing of it is left, by its group.

use std::time::{Duration, Instant};

use errand_runner::{Cgroup, End, Failure, Life, Limits, LogStream};
use rustix::process::{Pid, Signal, kill_process};

use super::{detected, directories, file, running_with_argument};
use crate::scene::{Done, PATIENCE, Scene, await_that};

const NONE: Limits = Limits { cpu_millis: None, memory_bytes: None, processes: None };
const BOUNDED: Limits = Limits { processes: Some(60), ..NONE };

/// It hears no TERM and grows as fast as it can. The first shell needs no process to wait.
const STORM: &str =
    "mkfifo never; f(){ trap '' TERM; f & f & sleep 0.01; f; }; f & : > begun; read x < never";

#[test]
fn the_group_lies_below_our_own() {
    let group = detected().group("errand-test", "run").expect("there are control groups");
    // The test in a kernel of its own says where it has put us.
    let base = std::env::var("ERRAND_TEST_BASE").unwrap_or_else(|_| "/sys/fs/cgroup".into());
    for directory in directories(&group) {
        assert!(directory.starts_with(&base), "{} is not in {base}", directory.display());
        assert!(directory.ends_with("errand-test/run"));
    }
}

#[test]
fn case_b1_a_process_that_left_session_and_environment_ends_with_its_group() {
    let escape = |argument: &str, then: &str| {
        Scene::new(&format!(
            "(env -i /usr/bin/setsid /bin/sleep {argument} & :); : > begun; {then}"
        ))
        .in_group(NONE)
    };
    let gone = |argument: &str| assert_eq!(running_with_argument(argument), Vec::<String>::new());

    let done = escape("77701", "echo done").run();
    done.assert_end(End::Succeeded, None);
    assert!(!done.outcome.interrupted);
    assert!(done.outcome.killed >= 1);
    done.assert_group_is_gone();
    gone("77701");

    let done = escape("77702", "exit 1").run();
    done.assert_end(End::Failed, Some(Failure::AgentFailed));
    done.assert_group_is_gone();
    gone("77702");

    let scene = escape("77703", "sleep 600");
    let done = scene.with(|launch| launch.timeout_seconds = 1.0).run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    done.assert_group_is_gone();
    gone("77703");

    let scene = escape("77704", "sleep 600");
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    done.assert_group_is_gone();
    gone("77704");
}

#[test]
fn case_b2_a_storm_of_forks_is_bounded_and_leaves_no_survivor() {
    let chain = "f(){ sleep 0.01; f & }; f & wait; : > begun; sleep 600";
    let done = cancelled_after_2_seconds(Scene::new(chain).in_group(BOUNDED), |_| true);
    done.assert_group_is_gone();

    let done = cancelled_after_2_seconds(Scene::new(STORM).in_group(BOUNDED), |group| {
        let current = file(group, "pids.current").expect("there is a limit");
        // The kernel counts a fork before it refuses it: one on each processor may be in there.
        let most = 60 + std::thread::available_parallelism().map_or(1, usize::from);
        assert!(current.parse::<usize>().is_ok_and(|count| count <= most), "{current}");
        group.usage().refused_forks > 0
    });
    done.assert_group_is_gone();
    let said = done.texts(LogStream::Platform);
    let struck = "The agent may have 60 processes";
    assert!(said.iter().any(|line| line.starts_with(struck)), "{said:#?}");
}

#[test]
fn what_a_machine_has_not_is_not_needed_to_end_a_storm() {
    // On version 2 all of it is in every group.
    for missing in [vec!["unified"], vec!["unified", "freezer"], vec!["freezer", "memory"]] {
        let scene = Scene::new(STORM).in_group_without(&missing, BOUNDED);
        let done = cancelled_after_2_seconds(scene, |group| group.usage().refused_forks > 0);
        done.assert_group_is_gone();
    }
}

fn cancelled_after_2_seconds(scene: Scene, rages: fn(&Cgroup) -> bool) -> Done {
    let scene = scene.with(|launch| launch.grace_seconds = 0.5);
    let child = scene.start();
    scene.await_file("begun");
    let began = Instant::now();
    await_that("the storm has raged", || {
        rages(scene.group()) && began.elapsed() > Duration::from_secs(2)
    });
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    done
}

#[test]
fn a_script_that_ignores_term_says_so_before_its_group_is_killed() {
    let scene = Scene::new("trap 'echo asked' TERM; : > begun; while :; do sleep 0.05; done");
    let scene = scene.in_group(NONE).with(|launch| launch.grace_seconds = 5.0);
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    assert_eq!(done.texts(LogStream::Stdout), ["asked"]);
    done.assert_group_is_gone();
}

#[test]
fn what_a_killed_supervisor_leaves_is_found_by_its_group() {
    let script = "(env -i /usr/bin/setsid /bin/sleep 77705 & :); : > begun; sleep 9999";
    let scene = Scene::new(script).in_group(NONE);
    let mut child = scene.start();
    scene.await_file("begun");
    // Before that it is `env` and `setsid`, and in between it has no arguments for a moment.
    await_that("it sleeps", || running_with_argument("77705") == ["/bin/sleep 77705 "]);
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it is ours");
    child.wait().expect("it is ours");
    assert_eq!(scene.run.life().expect("a run"), Life::Lost);
    // No mark in its environment, no parent of ours: only the group knows it.
    assert_ne!(running_with_argument("77705"), Vec::<String>::new());
    scene.group().end(PATIENCE).expect("it can be emptied");
    assert_eq!(running_with_argument("77705"), Vec::<String>::new());
    assert!(directories(scene.group()).iter().all(|directory| !directory.exists()));
}

#[test]
fn a_frozen_group_can_be_ended() {
    let scene = Scene::new(": > begun; sleep 9999").in_group(NONE);
    let mut child = scene.start();
    scene.await_file("begun");
    // As a supervisor would leave it that is killed at a bad moment.
    std::mem::forget(scene.group().freeze());
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it is ours");
    child.wait().expect("it is ours");
    scene.group().end(PATIENCE).expect("it can be emptied");
    await_that("nothing is left", || scene.survivors().is_empty());
}
