//! What an agent says: lines, files, and how much of it is kept.

use std::fs;
use std::time::Duration;

use errand_runner::{End, LogStream};

use crate::scene::Scene;

#[test]
fn case_k4_a_child_that_holds_the_pipes_does_not_hold_the_run() {
    let done = Scene::new("(sleep 600 &) ; echo done; exit 0").run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["response"], "done");
    // Less than Fabric would give an adapter to stop.
    assert!(done.took < Duration::from_secs(9), "{:?}", done.took);
}

#[test]
fn case_e1_five_thousand_lines_on_both_streams_are_complete_and_in_order() {
    let done =
        Scene::new("i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo o$i; echo e$i >&2; done");
    let done = done.run();
    let expected = |letter: char| Vec::from_iter((1..=5000).map(|n| format!("{letter}{n}")));
    assert_eq!(done.texts(LogStream::Stdout), expected('o'));
    assert_eq!(done.texts(LogStream::Stderr), expected('e'));
}

#[test]
fn case_l1_output_is_cut_at_the_limit_and_counted() {
    let scene = Scene::new("head -c 30000000 /dev/zero | tr '\\0' '\\377'; echo; echo END")
        .with(|launch| launch.output_limit_bytes = 100_000);
    let done = scene.run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["output"]["response_cut"], true);
    assert_eq!(done.result()["output"]["response_bytes"], 30_000_005);
    let kept = fs::read(done.scene.artifact("stdout.txt")).expect("it is an artifact");
    // The first line has no end for long; 64 KiB more of one are kept.
    assert!(kept.ends_with(b"\n[output cut: 165536 of 30000005 bytes kept]\n"));
    let lines = done.texts(LogStream::Stdout);
    assert!(lines[0].ends_with(" [line cut: it has 165536 bytes]"));
    assert_eq!(lines[1], "[output cut: 165536 of 30000005 bytes kept]");
}

#[test]
fn an_agent_that_empties_its_artifacts_loses_neither_log_nor_output() {
    let script = "rm -rf $FABRIC_ARTIFACTS/*; echo own > $FABRIC_ARTIFACTS/stdout.txt; echo done";
    let done = Scene::new(script).run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.texts(LogStream::Stdout), ["done"]);
    assert_eq!(done.artifact_text("stdout.txt"), "own\n");
    assert_eq!(done.artifact_text("stdout.1.txt"), "done\n");
}

#[test]
fn an_agent_that_makes_its_output_endless_ends() {
    let script = "echo words; until [ -s ../../io/agent.stdout ]; do sleep 0.01; done; \
        truncate -s 1T ../../io/agent.stdout; echo trouble >&2";
    let done = Scene::new(script).with(|launch| launch.output_limit_bytes = 1000).run();
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.texts(LogStream::Stdout), ["words"]);
    assert_eq!(done.texts(LogStream::Stderr), ["trouble"]);
    let kept = fs::metadata(done.scene.artifact("stdout.txt")).expect("it is an artifact");
    assert_eq!(kept.len(), 1 << 40);
    let said = done.texts(LogStream::Platform);
    let left = format!(
        "The agent's stdout is too long for the log: its last {} bytes are in output_artifacts \
         only.",
        (1_u64 << 40) - 6
    );
    assert!(said.contains(&left), "{said:?}");
}
