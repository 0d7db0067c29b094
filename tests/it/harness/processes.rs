//! Looking at processes, and waiting for what must come about.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use streams::broker::Error;

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long the queue may take to answer: an election takes up to nine seconds, and it may take
/// two.
const ANSWERED: Duration = Duration::from_secs(90);

/// Waits until a condition holds; panics with `what` when it does not within `within`.
pub async fn eventually<T, Fut>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> Fut,
) -> T
where
    Fut: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Asks the queue until it answers: a stream may have no leader for a moment.
pub async fn answered<T, Fut>(mut ask: impl FnMut() -> Fut) -> T
where
    Fut: Future<Output = Result<T, Error>>,
{
    let deadline = Instant::now() + ANSWERED;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(Error::Unavailable(_) | Error::Missing(_)) if Instant::now() < deadline => {}
            Err(error) => panic!("nats does not answer: {error}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Something takes less than so long, once of three times: the machine may do something else.
pub async fn best_of_three(within: Duration, mut measured: impl AsyncFnMut() -> Duration) {
    let mut all = Vec::new();
    for _ in 0..3 {
        let took = measured().await;
        if took < within {
            return;
        }
        all.push(took);
    }
    panic!("never within {within:?}: {all:?}");
}

/// Whether a process lives (a zombie does not).
pub fn is_running(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Processes that have exactly this argument.
pub fn running_with_argument(argument: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        if command.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// No process has this argument. One that has is shown, so that it can be told what it was.
pub fn assert_none_runs(argument: &str) {
    let left = running_with_argument(argument);
    let shown = |pid: &u32| {
        ["status", "cgroup", "environ"].map(|file| {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', "\n")
        })
    };
    let shown: Vec<_> = left.iter().map(shown).collect();
    assert!(left.is_empty(), "with the argument {argument} there are {left:?}: {shown:#?}");
}

/// Memory that a process has, in MiB.
pub fn resident_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a resident size");
    line.split_whitespace().nth(1).expect("kB").parse::<u64>().expect("a number") / 1024
}

/// Living processes of runs, and the name of the run, `<job uuid>-<attempt>`, that each bears.
pub fn processes_of_runs() -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut words = environment.split(|byte| *byte == 0);
        if let Some(run) = words.find_map(|word| word.strip_prefix(b"ERRAND_RUN="))
            && is_running(pid)
        {
            found.push((pid, String::from_utf8_lossy(run).into_owned()));
        }
    }
    found
}

/// Sends a signal to a process; one that is gone does not mind.
pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    let _ = kill_process(pid, signal);
}
