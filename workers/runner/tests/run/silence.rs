//! Agents that say nothing, and adapters that break off in the middle of what they say.

use std::fs;

use errand_runner::{End, Failure};
use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{Scene, await_that};

#[test]
fn case_h5_an_agent_that_says_nothing_is_ended_and_keeps_what_it_wrote() {
    let scene = Scene::new("echo half > out.txt; echo words; echo trouble >&2; sleep 3000");
    let done = scene.with(|launch| launch.idle_timeout_seconds = Some(3.0)).run();
    done.assert_end(End::TimedOut, Some(Failure::IdleTimeout));
    assert!(done.outcome.interrupted);
    let error = done.error();
    assert_eq!(error["message"], "no output for 3 s");
    assert_eq!(error["type"], "FabricRuntimeTimeoutError");
    assert_eq!((&error["fabric_status"], &error["timed_out"]), (&"timeout".into(), &true.into()));
    assert_eq!(
        (&error["code"], &error["stderr_tail"]),
        (&"idle_timeout".into(), &"trouble".into())
    );
    assert_eq!(done.workspace_text("out.txt"), "half\n");
    assert_eq!(done.artifact_text("stdout.txt"), "words\n");
}

#[test]
fn an_agent_that_says_something_in_time_goes_on() {
    // It speaks for longer than the limit, in turns on both streams, and without ending a line.
    let script = "for i in 1 2 3 4 5 6; do printf o; sleep 0.3; printf e >&2; sleep 0.3; done";
    let done = Scene::new(script).with(|launch| launch.idle_timeout_seconds = Some(2.0)).run();
    done.assert_end(End::Succeeded, None);
}

#[test]
fn an_agent_whose_output_is_no_longer_kept_is_not_idle() {
    let script = "head -c 100000 /dev/zero | tr '\\0' x
        for i in 1 2 3 4 5 6 7 8; do echo more; sleep 0.4; done; : > spoke; sleep 3000";
    let scene = Scene::new(script).with(|launch| {
        launch.output_limit_bytes = 1000;
        launch.idle_timeout_seconds = Some(2.0);
    });
    let done = scene.run();
    done.assert_end(End::TimedOut, Some(Failure::IdleTimeout));
    assert!(done.scene.workspace("spoke").exists(), "it was ended while it spoke");
}

#[test]
fn a_paused_supervisor_sees_that_the_agent_has_spoken_meanwhile() {
    let script = ": > begun; i=0
        while [ ! -e go ]; do i=$((i+1)); echo $i; echo $i > count; sleep 0.2; done";
    let scene = Scene::new(script).with(|launch| launch.idle_timeout_seconds = Some(2.0));
    let child = scene.start();
    scene.await_file("begun");
    let supervisor = Pid::from_child(&child);
    kill_process(supervisor, Signal::STOP).expect("it is ours");
    let count = || -> u32 {
        let text = fs::read_to_string(scene.workspace("count")).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    };
    await_that("the agent has spoken for longer than the limit", || count() > 15);
    kill_process(supervisor, Signal::CONT).expect("it is ours");
    let resumed = count();
    await_that("the supervisor has looked", || count() > resumed + 3);
    fs::write(scene.workspace("go"), "").expect("room on the disk");
    scene.finish(child).assert_end(End::Succeeded, None);
}

#[test]
fn a_foreign_adapter_that_says_nothing_is_ended_with_all_that_it_started() {
    let adapter = r#"
        read -r start; echo started >&2
        echo '{"operation":"start","outcome":{"status":"succeeded","output":null}}'
        read -r invoke; echo invoked >&2; sleep 3000"#;
    let scene = Scene::new("").with_adapter(adapter);
    let done = scene.with(|launch| launch.idle_timeout_seconds = Some(3.0)).run();
    done.assert_end(End::TimedOut, Some(Failure::IdleTimeout));
    assert_eq!(done.error()["stderr_tail"], "started\ninvoked");
}

#[test]
fn case_a10_all_events_of_a_stream_that_breaks_off_are_kept() {
    let adapter = r#"
        read -r start
        echo '{"operation":"start","outcome":{"status":"succeeded","output":null}}'
        read -r invoke
        for i in $(seq 1 50); do echo "{\"event\": $i}" >&2; done
        echo '{"event": "error", "message": "the model went away"}' >&2; exit 1"#;
    let done = Scene::new("").with_adapter(adapter).run();
    done.assert_end(End::Raised, Some(Failure::AgentCrashed));
    let mut events = Vec::from_iter((1..=50).map(|i| format!("{{\"event\": {i}}}")));
    events.push(r#"{"event": "error", "message": "the model went away"}"#.to_owned());
    assert_eq!(Vec::from_iter(done.artifact_text("stderr.txt").lines()), events);
    let error = done.error();
    for field in ["message", "stderr_tail"] {
        let text = error[field].as_str().expect("a text");
        assert!(text.contains("the model went away"), "{field}: {text}");
    }
}

#[test]
fn case_k5_an_adapter_that_ignores_its_limit_is_ended_by_the_supervisor() {
    let adapter = r#"
        trap '' TERM
        read -r start
        echo '{"operation":"start","outcome":{"status":"succeeded","output":null}}'
        read -r invoke; while :; do sleep 1; done"#;
    let scene = Scene::new("").with_adapter(adapter).with(|launch| {
        launch.timeout_seconds = 1.0;
        launch.grace_seconds = 1.0;
    });
    let done = scene.run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.outcome.killed >= 1);
}
