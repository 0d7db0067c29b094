//! What cannot be run, and what breaks while it runs.

use std::time::{Duration, Instant};

use errand_runner::{End, Failure, Life, LogStream, Usage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::scene::{Scene, await_that};

#[test]
fn a_definition_that_cannot_be_run_is_raised_with_its_reason() {
    let cases = [
        (
            json!({"harnesses": {"script": {"kind": "x"}}}),
            Failure::AdapterMissing,
            "Unsupported harness kind 'x'. Supported harness kinds: claude, codex, deepagents, \
             hermes, nooa-bench-agent, pi, remote-agent, script; or a fully-qualified Fabric \
             adapter id starting with 'nvidia.fabric.'.",
        ),
        (
            json!({"environment": {"workspace": "../x"}}),
            Failure::AgentFailed,
            "Local workspace path must remain within the agent base directory.",
        ),
        (
            json!({"harnesses": {"script": {
                "kind": "nvidia.fabric.none", "model": {"provider": "p", "model": "m"},
            }}}),
            Failure::AdapterMissing,
            "Fabric runtime startup failed: unknown adapter `nvidia.fabric.none`; available \
             adapters: [\"errand.script\"]",
        ),
        (
            json!({"tools": {"blocked": ["Bash"]}}),
            Failure::AgentFailed,
            "Fabric runtime startup failed: adapter `errand.script` cannot implement \
             configuration at `tools.blocked`: ",
        ),
    ];
    for (change, failure, text) in cases {
        let scene = Scene::new("echo never").with(|launch| {
            for (key, value) in change.as_object().expect("an object") {
                launch.agent[key] = value.clone();
            }
        });
        let done = scene.run();
        done.assert_end(End::Raised, Some(failure));
        let message = done.error()["message"].as_str().expect("a message");
        assert!(message.starts_with(text), "{message}");
        assert_eq!(done.outcome.invoked_at, None);
        assert_eq!(done.error()["fabric_status"], "error");
    }
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let scene = Scene::new("").with(|launch| {
        let settings = &mut launch.agent["harnesses"]["script"]["settings"];
        settings["command"] = json!(["no-such-program"]);
    });
    let done = scene.run();
    done.assert_end(End::Failed, Some(Failure::AgentFailed));
    assert_eq!(
        done.outcome.message,
        "the command \"no-such-program\" was not found: not in the working directory, not beside \
         agent.yaml, not on PATH"
    );
}

#[test]
fn case_c8_a_script_that_kills_its_adapter_is_a_crash() {
    // What is still in a pipe dies with its reader, so the script waits until it was read.
    let script = "echo words; echo trouble >&2; \
        until [ -s ../../io/agent.stdout ] && [ -s ../../io/agent.stderr ]; do sleep 0.01; done; \
        kill -9 $PPID; sleep 600";
    let done = Scene::new(script).run();
    done.assert_end(End::Raised, Some(Failure::AgentCrashed));
    assert!(done.outcome.interrupted);
    assert_eq!(done.error()["type"], "FabricRuntimeExecutionError");
    assert_eq!(done.error()["stderr_tail"], "trouble");
    assert_eq!(done.texts(LogStream::Stdout), ["words"]);
}

#[test]
fn a_foreign_adapter_is_found_and_its_stderr_and_usage_are_kept() {
    let adapter = r#"
        read -r start; echo started >&2
        echo '{"operation":"start","outcome":{"status":"succeeded","output":null}}'
        read -r invoke; echo "deadline $NEMO_JOB_DEADLINE" >&2
        echo '{"operation":"invoke","outcome":{"status":"succeeded","output":{"status":"succeeded",
            "output":{"response":"96","usage":{"input_tokens":812,"output_tokens":96}}}}}' | tr -d '\n'
        echo
        read -r stop; echo '{"operation":"stop","outcome":{"status":"succeeded"}}'"#;
    let done = Scene::new("").with_adapter(adapter).run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["response"], "96");
    let usage = Usage { input_tokens: 812, output_tokens: 96 };
    assert_eq!(done.outcome.usage, Some(usage));
    let stderr = done.texts(LogStream::Stderr);
    assert_eq!(stderr[0], "started");
    assert!(stderr[1].starts_with("deadline 20"), "{stderr:?}");
}

#[test]
fn a_launch_that_cannot_be_read_is_raised() {
    let scene = Scene::new("").with(|launch| launch.version = 2);
    let done = scene.run();
    done.assert_end(End::Raised, Some(Failure::AgentFailed));
    assert_eq!(
        done.outcome.message,
        "launch.json has version 2, this runner reads version 1: use one release"
    );
}

#[test]
fn a_supervisor_that_is_killed_leaves_a_lost_attempt_and_no_running_agent() {
    let scene = Scene::new(": > begun; sleep 9999");
    let mut child = scene.start();
    scene.await_file("begun");
    assert_eq!(scene.run.life().expect("a run"), Life::Running);
    let supervisor = Pid::from_child(&child);
    assert_eq!(scene.run.identity().expect("it has said who it is").pid, supervisor.as_raw_pid());
    kill_process(supervisor, Signal::KILL).expect("it is ours");
    child.wait().expect("it is ours");
    assert_eq!(scene.run.life().expect("a run"), Life::Lost);
    await_that("nothing is left", || scene.survivors().is_empty());
}

#[test]
fn case_k5_a_paused_supervisor_meets_the_limit_when_it_wakes_up() {
    let scene = Scene::new(": > begun; sleep 9999").with(|launch| launch.timeout_seconds = 1.0);
    let child = scene.start();
    scene.await_file("begun");
    let supervisor = Pid::from_child(&child);
    let paused = Instant::now();
    kill_process(supervisor, Signal::STOP).expect("it is ours");
    await_that("the limit is over", || paused.elapsed() > Duration::from_secs(2));
    kill_process(supervisor, Signal::CONT).expect("it is ours");
    let done = scene.finish(child);
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.took < Duration::from_secs(2), "{:?}", done.took);
}

#[test]
fn a_small_run_is_quick() {
    let fastest = (0..5).map(|_| Scene::new("echo done").run().took).min().expect("five runs");
    assert!(fastest < Duration::from_millis(500), "{fastest:?}");
}
