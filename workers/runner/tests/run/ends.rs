//! How runs end: success, failure, limits, stops, and that nothing of them is left.

use std::fs;
use std::time::Duration;

use errand_runner::{End, Failure, Life, LogStream, Moment};
use serde_json::Value;

use crate::scene::Scene;

#[test]
fn a_script_that_succeeds_has_a_response_and_a_log() {
    let done = Scene::new("cat; echo; echo to-stderr >&2; pwd > where").run();
    done.assert_end(End::Succeeded, None);
    let result = done.result();
    assert_eq!(result["status"], "succeeded");
    assert_eq!(result["response"], "the input");
    assert_eq!(result["request_id"], "job-1");
    assert_eq!(result["error"], Value::Null);
    assert_eq!(done.outcome.message, "");
    assert!(!done.outcome.interrupted);
    assert_eq!(done.outcome.killed, 0);
    let invoked_at = done.outcome.invoked_at.expect("it was invoked");
    assert!(done.outcome.started_at <= invoked_at && invoked_at <= done.outcome.ended_at);
    assert_eq!(done.texts(LogStream::Stdout), ["the input"]);
    assert_eq!(done.texts(LogStream::Stderr), ["to-stderr"]);
    let platform = done.texts(LogStream::Platform);
    assert_eq!(
        platform[..2],
        ["Executing agent default/word-count (timeout 60s).", "Invoking agent default/word-count."]
    );
    assert!(platform[2].starts_with("Agent default/word-count returned status=succeeded after "));
    let where_it_ran = done.workspace_text("where");
    assert!(where_it_ran.ends_with("/base/workspace\n"));
    let listed = result["artifacts"]["artifacts"].as_array().expect("a list");
    for name in ["agent_stdout", "agent_stderr"] {
        assert!(listed.iter().any(|artifact| artifact["name"] == name));
    }
    assert_eq!(done.artifact_text("stdout.txt"), "the input\n");
    assert_eq!(done.artifact_text("stderr.txt"), "to-stderr\n");
}

#[test]
fn a_script_that_fails_is_failed_with_its_code_and_last_words() {
    let done = Scene::new("echo half; echo trouble >&2; exit 3").run();
    done.assert_end(End::Failed, Some(Failure::AgentFailed));
    assert_eq!(done.outcome.message, "exited with code 3: trouble");
    assert_eq!(done.result()["status"], "failed");
    assert_eq!(done.result()["error"]["code"], "agent_failed");
    assert_eq!(done.result()["response"], "half");
    assert!(!done.outcome.interrupted);
}

#[test]
fn case_a2_a_killed_script_is_marked_as_interrupted() {
    let done = Scene::new("printf '{\"rows\":[1,2' > report.json; kill -9 $$").run();
    done.assert_end(End::Failed, Some(Failure::AgentCrashed));
    assert_eq!(done.outcome.message, "killed by signal 9");
    assert!(done.outcome.interrupted);
    assert_eq!(done.workspace_text("report.json"), "{\"rows\":[1,2");
}

#[test]
fn case_a1_the_time_limit_ends_a_script_and_keeps_what_it_wrote() {
    let scene = Scene::new("echo half > out.txt; echo trouble >&2; sleep 600");
    let done = scene.with(|launch| launch.timeout_seconds = 1.0).run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.took < Duration::from_secs(5), "{:?}", done.took);
    assert!(done.outcome.interrupted);
    let error = done.error();
    assert_eq!(error["type"], "FabricRuntimeTimeoutError");
    assert_eq!(error["message"], "Fabric runtime invocation timed out after 1s.");
    assert_eq!(error["fabric_status"], "timeout");
    assert_eq!(error["timed_out"], true);
    assert_eq!(error["code"], "timeout");
    assert_eq!(error["cause_type"], "TimeoutError");
    assert_eq!(error["cause_message"], "");
    assert_eq!(error["stderr_tail"], "trouble");
    assert_eq!(done.workspace_text("out.txt"), "half\n");
    assert_eq!(done.artifact_text("stderr.txt"), "trouble\n");
    assert_eq!(done.texts(LogStream::Stderr), ["trouble"]);
}

#[test]
fn case_a8_a_script_may_save_its_work_within_the_grace_and_has_timed_out_all_the_same() {
    let script = "trap 'echo flushed > last.txt; exit 0' TERM; while :; do sleep 0.05; done";
    let scene = Scene::new(script).with(|launch| {
        launch.timeout_seconds = 3.0;
        launch.grace_seconds = 20.0;
    });
    let done = scene.run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert_eq!(done.workspace_text("last.txt"), "flushed\n");
    assert_eq!(done.outcome.message, "Fabric runtime invocation timed out after 3s.");
}

#[test]
fn case_b14_a_script_that_ignores_term_is_killed_after_the_grace() {
    let scene = Scene::new("trap '' INT TERM HUP; sleep 9999").with(|launch| {
        launch.timeout_seconds = 3.0;
        launch.grace_seconds = 1.0;
    });
    let done = scene.run();
    done.assert_end(End::TimedOut, Some(Failure::Timeout));
    assert!(done.outcome.killed >= 1);
    assert!(done.took < Duration::from_secs(20), "{:?}", done.took);
}

#[test]
fn case_a6_no_output_is_no_result_unless_it_is_allowed() {
    let done = Scene::new("exit 0").run();
    done.assert_end(End::Failed, Some(Failure::NoResult));
    assert_eq!(done.outcome.message, "agent returned no result");
    let scene = Scene::new("exit 0").with(|launch| {
        launch.agent["harnesses"]["script"]["settings"]["allow_empty"] = true.into();
    });
    scene.run().assert_end(End::Succeeded, None);
}

#[test]
fn case_b1_a_process_that_left_the_session_is_gone_after_success() {
    let done = Scene::new("(setsid sh -c 'sleep 7777' &); echo done; exit 0").run();
    done.assert_end(End::Succeeded, None);
    assert!(done.outcome.killed >= 1);
    assert!(!done.outcome.interrupted);
}

#[test]
fn case_b2_a_storm_of_forks_does_not_outrun_the_end() {
    let storm = "f() { sleep 0.01; [ -e over ] || f & }\n: > begun; f & f & f & wait; sleep 600";
    let scene = Scene::new(storm);
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
}

#[test]
fn case_b3_a_stop_ends_the_whole_tree() {
    let scene = Scene::new(": > begun; sh -c 'sleep 9999'; true");
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("cancel").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    assert!(done.outcome.interrupted);
    let error = done.error();
    assert_eq!(error["fabric_status"], "error");
    assert_eq!(error["timed_out"], false);
    assert_eq!(error["code"], "cancelled");
}

#[test]
fn a_stop_for_another_reason_says_it() {
    let scene = Scene::new(": > begun; sleep 9999");
    let child = scene.start();
    scene.await_file("begun");
    scene.run.ask_to_stop("the job was deleted").expect("room on the disk");
    let done = scene.finish(child);
    done.assert_end(End::Stopped, Some(Failure::Cancelled));
    assert!(done.outcome.message.ends_with(": the job was deleted"));
}

#[test]
fn a_lease_that_nobody_renews_ends_the_run() {
    let scene = Scene::new("sleep 9999").with(|launch| launch.lease_seconds = Some(10.0));
    scene.run.renew_lease(Moment::now()).expect("room on the disk");
    let done = scene.run();
    done.assert_end(End::Stopped, Some(Failure::WorkerLost));
    assert_eq!(done.error()["code"], "worker_lost");
}

/// Its worker was paused on the way to the start, and the claim may be somebody else's by now.
#[test]
fn a_claim_that_was_held_too_long_ago_starts_nothing() {
    let scene = Scene::new(": > begun; echo done").with(|launch| launch.lease_seconds = Some(60.0));
    let long_ago = Moment::now().before(Duration::from_secs(61));
    scene.run.renew_lease(long_ago).expect("room on the disk");
    let mut child = scene.start();
    assert_eq!(child.wait().expect("a child").code(), Some(4));
    assert_eq!(scene.run.life().expect("a run"), Life::Fresh);
    assert!(!scene.workspace("begun").exists());
    scene.run.renew_lease(Moment::now()).expect("room on the disk");
    scene.run().assert_end(End::Succeeded, None);
}

/// Somebody else may start the agent soon.
#[test]
fn an_agent_that_ignores_term_is_gone_soon_after_its_lease() {
    let scene = Scene::new("trap '' TERM; sleep 9999; sleep 9999").with(|launch| {
        (launch.lease_seconds, launch.grace_seconds) = (Some(10.0), 600.0);
    });
    scene.run.renew_lease(Moment::now()).expect("room on the disk");
    let done = scene.run();
    done.assert_end(End::Stopped, Some(Failure::WorkerLost));
}

#[test]
fn the_gate_lets_one_supervisor_in_for_ever() {
    let scene = Scene::new(": > begun; while [ ! -e go ]; do sleep 0.01; done; echo done");
    let first = scene.start();
    scene.await_file("begun");
    let mut second = scene.start();
    assert_eq!(second.wait().expect("a child").code(), Some(3));
    assert_eq!(scene.run.life().expect("a run"), Life::Running);
    fs::write(scene.workspace("go"), "").expect("room on the disk");
    let done = scene.finish(first);
    done.assert_end(End::Succeeded, None);
    let mut third = done.scene.start();
    assert_eq!(third.wait().expect("a child").code(), Some(3));
}
