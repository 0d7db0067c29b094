//! Agents that write in the host's name: everything in `io/` is theirs to change.

use errand_runner::{End, Failure};

use crate::scene::{Done, Scene};

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
