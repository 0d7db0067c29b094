//! Agents that write in the host's name: everything in `io/` is theirs to change.

use std::process::Command;

use errand_runner::{End, Failure};

use crate::scene::{Done, PROGRAM, Scene};

/// An agent that reports itself, and then ends the host before that can report.
fn report(report: &str) -> Done {
    let script = format!(
        "parent() {{ sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$1/stat; }}
        {report} > ../../io/host.json; kill -9 $(parent $PPID); sleep 600"
    );
    Scene::new(&script).run()
}

#[test]
fn a_forged_report_of_any_shape_has_an_outcome() {
    let done = report(r#"echo '{"returned":{"status":"succeeded","artifacts":"x"}}'"#);
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["artifacts"]["artifacts"][0]["name"], "agent_stdout");
    for odd in ["7", r#"{"returned":7}"#, r#"{"returned":{"error":[],"output":"x"}}"#] {
        let done = report(&format!("echo '{odd}'"));
        assert_ne!(done.outcome.end, End::Succeeded, "{odd}");
        assert_ne!(done.outcome.failure, None::<Failure>, "{odd}");
    }
}

#[test]
fn a_report_that_is_too_long_is_a_failure_and_not_kept() {
    let long = r#"(printf '{"returned":{"status":"succeeded","output":"'
        head -c 9000000 /dev/zero | tr '\0' x; echo '"}}')"#;
    let done = report(long);
    done.assert_end(End::Raised, Some(Failure::AdapterProtocol));
    let sentence = "the agent's run result is longer than 8 MiB of JSON: let the agent write what \
                    is large into files";
    assert_eq!(done.error()["message"], sentence);
}

#[test]
fn a_report_may_be_long() {
    let long = r#"(printf '{"returned":{"status":"succeeded","output":{"response":"'
        head -c 2000000 /dev/zero | tr '\0' x; echo '"}}}')"#;
    let done = report(long);
    done.assert_end(End::Succeeded, None);
    assert_eq!(done.result()["response"].as_str().map(str::len), Some(2_000_000));
}

/// An adapter can say when the invocation begins before it does.
#[test]
fn an_invocation_is_within_its_run() {
    for forged in ["1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z"] {
        let adapter = format!(
            r#"
            echo '{{"at":"{forged}"}}' > "$TMPDIR/../io/invoked"
            read -r start; sleep 0.2
            echo '{{"operation":"start","outcome":{{"status":"succeeded","output":null}}}}'
            read -r invoke
            echo '{{"operation":"invoke","outcome":{{"status":"succeeded","output":{{"status":"succeeded","output":{{"response":"96"}}}}}}}}'
            read -r stop; echo '{{"operation":"stop","outcome":{{"status":"succeeded"}}}}'"#
        );
        let done = Scene::new("").with_adapter(&adapter).run();
        done.assert_end(End::Succeeded, None);
        let at = done.outcome.invoked_at.expect("it was invoked");
        assert!((done.outcome.started_at..=done.outcome.ended_at).contains(&at), "{forged}: {at}");
    }
}

/// A supervisor may die before the host can ask to be told of it.
#[test]
fn a_host_whose_supervisor_is_gone_runs_nothing() {
    let scene = Scene::new("echo ran > ran");
    scene.write();
    // Its parent is this test, and not the first process.
    let host = Command::new(PROGRAM).arg("host").arg(scene.run.root()).args(["1", ""]).output();
    let host = host.expect("the program was built");
    assert_eq!(String::from_utf8_lossy(&host.stderr), "the supervisor is gone\n");
    assert!(!host.status.success() && !scene.workspace("ran").exists());
}
