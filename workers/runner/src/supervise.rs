//! `errand-runner supervise DIR`: one attempt, from the start gate to `outcome.json`.
//!
//! It stands outside the tree that it may have to kill, owns the time limit and the log, and
//! leaves an outcome whatever happens inside. It knows nothing of Fabric: it starts the host and
//! reads what that reports.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use errand_runner::{Outcome, RunDir, run_dir};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{getpid, set_child_subreaper, setsid};

use crate::{limit, report, tree};

mod left_stderr;
mod limits;
mod ownership;
mod prepare;
mod session;
mod verdict;
mod watch;

/// Somebody else runs, or ran, this attempt.
const EXIT_TAKEN: u8 = 3;

/// Nobody may have the right to start this attempt any more.
const EXIT_LATE: u8 = 4;

/// An outcome holds a response of up to 1 MiB, and JSON makes that more.
const RESERVED_BYTES: u64 = 4 * 1024 * 1024;

/// The supervisor's own environment, and the beginning of the agent's.
const ALLOWED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// Runs the attempt.
pub(crate) fn run(dir: &Path) -> ExitCode {
    match start(dir) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cannot run the attempt in {}: {error}", dir.display());
            ExitCode::FAILURE
        }
    }
}

fn start(dir: &Path) -> io::Result<ExitCode> {
    leave_the_callers_environment()?;
    // It fails only for a process that leads a group already, which serves as well.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let run = RunDir::new(fs::canonicalize(dir)?);
    let started_at = limit::now();
    if let Some(late) = is_too_late(&run) {
        eprintln!("nothing is started: the claim was last held {late:.1?} ago");
        return Ok(ExitCode::from(EXIT_LATE));
    }
    let _lock = match run.start(&identity()?) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Ok(ExitCode::from(EXIT_TAKEN));
        }
        Err(error) => return Err(error),
    };
    reserve(&run);
    let outcome = session::conduct(&run, started_at);
    write_outcome(&run, &outcome)?;
    Ok(ExitCode::SUCCESS)
}

/// How long ago the claim was held, when that is too long. A worker that was paused on the way here
/// may have lost it, and the agent may run elsewhere, or be told of already.
fn is_too_late(run: &RunDir) -> Option<Duration> {
    // What cannot be read is said later, in an outcome.
    let lease = run.launch().ok()?.lease_seconds?;
    let ago = run.lease_renewed()?.elapsed();
    (ago.as_secs_f64() >= lease).then_some(ago)
}

/// An agent may read the environment of any process of its uid, so what the worker knows must
/// not stay in ours: the program starts itself again, with the allow-list only.
fn leave_the_callers_environment() -> io::Result<()> {
    let is_clean = std::env::vars_os().all(|(name, _)| ALLOWED.iter().any(|ok| name == **ok));
    if is_clean {
        return Ok(());
    }
    let error = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env_clear()
        .envs(allowed_variables())
        .exec();
    Err(error)
}

fn allowed_variables() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    ALLOWED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

fn identity() -> io::Result<run_dir::Identity> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(run_dir::Identity {
        pid: getpid().as_raw_pid(),
        boot_id: boot_id.trim().to_owned(),
        start_time: tree::start_time(getpid())
            .ok_or_else(|| io::Error::other("/proc/self/stat cannot be read"))?,
    })
}

/// Sets space aside for the report and the outcome. Where there is none to set aside, or the file
/// system cannot, the run goes on without.
fn reserve(run: &RunDir) {
    let made = fs::create_dir_all(run.io()).and_then(|()| File::create(run.reserve()));
    let _ = made.map(|file| fallocate(file, FallocateFlags::empty(), 0, RESERVED_BYTES));
}

/// An outcome must be written even when the agent has filled the disk. The report has been read
/// by now; HOME and TMPDIR are no results, and give way as well.
fn write_outcome(run: &RunDir, outcome: &Outcome) -> io::Result<()> {
    run.write_outcome(outcome).or_else(|_| {
        // What cannot be removed frees no space; the write below says whether it was enough.
        for file in [run.reserve(), report::report_path(run)] {
            let _ = fs::remove_file(file);
        }
        for scratch in [run.tmp(), run.home()] {
            let _ = fs::remove_dir_all(scratch);
        }
        run.write_outcome(outcome)
    })
}
