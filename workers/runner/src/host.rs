//! `errand-runner host DIR PYTHON [SECRET…]`: the Fabric host, one agent long.
//!
//! It translates, plans, starts, invokes and stops, and reports through two files (see `report`).
//! It decides nothing about time or about processes, and it masks nothing: the supervisor does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use errand_runner::{Cgroup, Failure, Launch, RunDir, output};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};
use serde_json::{Map, Value, json};

use crate::fabric::{Plan, Runtime};
use crate::report::{self, Invoked, Raised, Report};
use crate::translate::{self, Surroundings};
use crate::{confine, limit, script};

/// Runs the agent of the launch in `dir` for this supervisor; `python` is the interpreter of its
/// adapter, empty when that is Fabric's affair, `secrets` are the names of its secret variables.
pub(crate) fn run(dir: &Path, supervisor: Pid, python: &str, secrets: &[&str]) -> ExitCode {
    // It cannot fail: a fresh child leads no group.
    let _ = setsid();
    let run = RunDir::new(dir);
    let python = Some(Path::new(python)).filter(|python| !python.as_os_str().is_empty());
    let conducted = die_with(supervisor);
    match conducted.and_then(|()| conduct(&run, supervisor, python, secrets)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Without a supervisor nobody keeps the time limit, so the host goes with it.
fn die_with(supervisor: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Nobody tells of a death that came before.
    match getppid() == Some(supervisor) {
        true => Ok(()),
        false => Err(io::Error::other("the supervisor is gone")),
    }
}

fn conduct(
    run: &RunDir,
    supervisor: Pid,
    python: Option<&Path>,
    secrets: &[&str],
) -> io::Result<()> {
    let launch = run.launch()?;
    launch.cgroup.as_ref().map_or(Ok(()), Cgroup::join)?;
    // Before anything of the agent is read or done.
    if let Err(error) = confine::enter(run, &launch, python) {
        // The agent has done nothing: it is the place that cannot give what keeps it apart.
        let refused = Raised::refused(Failure::Unschedulable, error.to_string());
        return write_report(run, &Report::Raised(refused));
    }
    // Another user's process starts without it.
    die_with(supervisor)?;
    let promised = limit::deadline(limit::now(), &launch);
    let plan = match plan(run, &launch, secrets, promised) {
        Ok(plan) => plan,
        Err(raised) => return write_report(run, &Report::Raised(raised)),
    };
    let runtime = match start(run, &plan) {
        Ok(runtime) => runtime,
        Err(raised) => return write_report(run, &Report::Raised(raised)),
    };
    let at = limit::now();
    // The environment of an adapter is fixed when it starts, so the promise to its agent dates
    // from then; the limit itself strikes that much later. Our own adapter starts the script with
    // the request and knows the very instant.
    let deadline =
        if translate::is_script(&launch.agent) { limit::deadline(at, &launch) } else { promised };
    report::write(&report::invoked_path(run), &Invoked { at })?;
    let context = with_deadline(launch.context, &deadline.to_string());
    let report = match runtime.invoke(&launch.job_name, &launch.input, context) {
        Ok(result) => Report::Returned(result),
        Err(raised) => Report::Raised(raised),
    };
    write_report(run, &report)?;
    runtime.stop().map_err(io::Error::other)
}

fn plan(
    run: &RunDir,
    launch: &Launch,
    secrets: &[&str],
    promised: jiff::Timestamp,
) -> Result<Plan, Raised> {
    let own = run.io().join("adapters");
    script::write_descriptor(&own, run.root(), launch.output_limit_bytes).map_err(|error| {
        Raised::refused(Failure::DiskFull, format!("cannot write the adapter descriptor: {error}"))
    })?;
    let given = launch.adapter_dirs.iter().map(PathBuf::from);
    let given: Vec<_> = given.filter(|dir| dir.is_dir()).collect();
    if let Some(closed) = given.iter().find(|dir| fs::read_dir(dir).is_err()) {
        let reason = format!(
            "the agent's user cannot read the adapter directory {0}: chmod o+rx {0}",
            closed.display()
        );
        return Err(Raised::refused(Failure::AdapterMissing, reason));
    }
    let config = translate::fabric_config(
        launch,
        &Surroundings {
            base: &run.base(),
            adapter_dirs: std::iter::once(own).chain(given).collect(),
            secrets,
            deadline: promised,
        },
    )
    .map_err(|error| Raised::refused(error.failure(), error.to_string()))?;
    Plan::new(config, &run.base())
}

/// Starts the adapter. Meanwhile its stderr is given a second name, because Fabric deletes the
/// first one when it stops or gives up the adapter.
fn start<'a>(run: &RunDir, plan: &'a Plan) -> Result<Runtime<'a>, Raised> {
    let started = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let kept = output::adapter_stderr(run);
            loop {
                let last = started.load(Ordering::Acquire);
                if link_adapter_stderr(&run.tmp(), &kept) || last {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let runtime = plan.start();
        started.store(true, Ordering::Release);
        runtime
    })
}

fn link_adapter_stderr(tmp: &Path, kept: &Path) -> bool {
    let Ok(hosts) = fs::read_dir(tmp.join("nemo-fabric/hosts")) else {
        return false;
    };
    hosts.flatten().any(|host| fs::hard_link(host.path().join("host.stderr.log"), kept).is_ok())
}

fn with_deadline(mut context: Map<String, Value>, deadline: &str) -> Map<String, Value> {
    let own = context.entry("nemo_helix").or_insert_with(|| json!({}));
    own["deadline"] = deadline.into();
    context
}

/// A full disk must not cost the result: space was set aside for it, and TMPDIR is no result.
fn write_report(run: &RunDir, report: &Report) -> io::Result<()> {
    let path = report::report_path(run);
    report::write(&path, report).or_else(|_| {
        // What cannot be removed frees no space; the write below says whether it was enough.
        let _ = fs::remove_file(run.reserve());
        // The directory itself stays: it is not the host's to remove.
        for entry in fs::read_dir(run.tmp())?.flatten() {
            let path = entry.path();
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        report::write(&path, report)
    })
}
