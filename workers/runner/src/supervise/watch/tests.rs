use std::collections::BTreeMap;

use errand_runner::{Limits, Network, Sandbox};
use serde_json::{Map, Value};

use super::*;

fn launch() -> Launch {
    Launch {
        version: 1,
        run: "run-1".into(),
        job_name: "job-1".into(),
        workspace: "default".into(),
        agent: Value::Null,
        input: String::new(),
        context: Map::new(),
        timeout_seconds: 60.0,
        idle_timeout_seconds: None,
        grace_seconds: 2.0,
        lease_seconds: None,
        env: BTreeMap::new(),
        adapter_dirs: Vec::new(),
        python: None,
        readable: Vec::new(),
        output_limit_bytes: 0,
        limits: Limits::default(),
        cgroup: None,
        sandbox: Sandbox::None,
        network: Network::Host,
    }
}

/// When the limit of a run strikes, after its start, that says at a look so late that it was
/// invoked at a time so much off its start.
fn strikes(looked_after: Duration, offset_seconds: i64) -> Duration {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = RunDir::new(dir.path());
    std::fs::create_dir(run.io()).expect("it is new");
    let launch = launch();
    let mut watch = Watch::new(&run, &launch);
    let at = watch.started_at + jiff::SignedDuration::from_secs(offset_seconds);
    report::write(&report::invoked_path(&run), &report::Invoked { at }).expect("room");
    let looked = watch.started + looked_after;
    watch.note_invocation(looked);
    watch.limit.expect("it was invoked").duration_since(watch.started)
}

#[test]
fn a_forged_invocation_moves_the_limit_neither_way() {
    const LIMIT: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);
    // Only the wall clock counts between the invocation and the look, and it stands still here.
    for years in [-50, 50] {
        let struck = strikes(SECOND, years * 31_536_000);
        assert!(struck <= SECOND + LIMIT && struck > LIMIT - SECOND, "{years}: {struck:?}");
    }
    // The supervisor slept, or the file was hidden from it.
    assert_eq!(strikes(10 * START_BUDGET, 31_536_000), START_BUDGET + LIMIT);
}

#[test]
fn a_long_file_is_no_invocation() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = RunDir::new(dir.path());
    std::fs::create_dir(run.io()).expect("it is new");
    let text = format!("{}{{\"at\":\"{}\"}}", " ".repeat(2000), limit::now());
    std::fs::write(report::invoked_path(&run), text).expect("room on the disk");
    assert!(report::read_invoked(&run).is_none());
}
