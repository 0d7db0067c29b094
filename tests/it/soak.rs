//! Many jobs of all kinds through one platform, after which nothing of them is left but what is
//! kept on purpose, and the platform is no larger than it was. `./dev soak [N]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::faulty_store::left_behind;
use crate::harness::{Api, Job, Options, Platform, eventually, processes_of_runs, resident_mib};

/// So many jobs in `./dev test`.
const JOBS: usize = 60;

/// Jobs that are in hand at once, in fewer slots.
const AT_ONCE: usize = 12;
const SLOTS: u32 = 6;

const LATER: Duration = Duration::from_secs(120);

/// Directories of runs stay for half a minute after the last fact; the janitor looks as often.
const CLEARED: Duration = Duration::from_secs(120);

/// What the memory may differ by at the end from after the first part, where there are many jobs.
const FLAT_MIB: u64 = 24;
const MANY: usize = 500;

/// A kind of job: its script, what its spec says besides, and how it must end.
struct Kind {
    name: &'static str,
    script: &'static str,
    more: fn() -> Value,
    cancelled: bool,
    status: &'static str,
    code: &'static str,
}

const SUCCESS: Kind = Kind {
    name: "success",
    script: "seq 1 500; echo kept > kept; head -c 200000 /dev/urandom > data",
    more: || json!({}),
    cancelled: false,
    status: "completed",
    code: "",
};

const KINDS: [Kind; 7] = [
    SUCCESS,
    LARGE,
    Kind { name: "failure", script: "exit 3", status: "error", code: "agent_failed", ..SUCCESS },
    Kind {
        name: "timeout",
        script: "(sleep 600 &); sleep 600",
        more: || json!({"timeout_seconds": 1}),
        status: "error",
        code: "timeout",
        ..SUCCESS
    },
    Kind {
        name: "cancel",
        script: "(setsid sleep 600 &); sleep 600",
        cancelled: true,
        status: "cancelled",
        code: "",
        ..SUCCESS
    },
    Kind {
        name: "fork storm",
        script: "i=0; while [ $i -lt 40 ]; do (setsid sleep 600 &); i=$((i+1)); done; echo stormed",
        ..SUCCESS
    },
    OUT_OF_MEMORY,
];

/// Those that take the most memory while they are saved.
const LARGE: Kind = Kind {
    name: "large result",
    script: "head -c 10000000 /dev/urandom > large; echo done",
    ..SUCCESS
};

const OUT_OF_MEMORY: Kind = Kind {
    name: "out of memory",
    script: "head -c 300000000 /dev/zero | tail",
    more: || {
        let resources = json!({"limits": {"memory": "64Mi"}});
        json!({"environment": {"compute_spec": {"resources": resources}}})
    },
    status: "error",
    code: "oom_killed",
    ..SUCCESS
};

#[tokio::test]
async fn many_jobs_of_all_kinds_leave_nothing_behind() {
    let wanted = std::env::var("ERRAND_SOAK_JOBS").ok();
    let jobs = wanted.map_or(JOBS, |wanted| wanted.parse().expect("a number of jobs"));
    let platform = Platform::with(Options { slots: SLOTS, ..Options::default() }).await;
    let api = platform.api();
    let part = jobs.div_ceil(2).min(100);
    let mut table = BTreeMap::<&str, (usize, Duration)>::new();
    let mut memory = Vec::new();
    let mut running = stream::iter(0..jobs).map(|n| run(&api, n)).buffer_unordered(AT_ONCE);
    let mut done = Vec::new();
    while let Some((kind, job, took)) = running.next().await {
        let row = table.entry(kind).or_default();
        *row = (row.0 + 1, row.1 + took);
        done.push(job.id.to_string());
        if done.len().is_multiple_of(part) || done.len() == jobs {
            memory.push(resident_mib(platform.pid()));
        }
    }
    println!("{:<16}{:>6}{:>12}", "kind", "jobs", "seconds");
    for (kind, (count, took)) in table {
        println!("{kind:<16}{count:>6}{:>12.2}", took.as_secs_f64() / count as f64);
    }
    println!("resident MiB after each {part} jobs: {memory:?}");
    let (first, last) = (memory[0], memory[memory.len() - 1]);
    // A few dozen jobs only warm the platform up.
    assert!(jobs < MANY || last <= first + FLAT_MIB, "memory grows: {memory:?}");

    let of_ours = |name: &str| done.iter().any(|id| name.contains(id));
    let mut left: Vec<_> = processes_of_runs().into_iter().map(|(_, run)| run).collect();
    left.extend(cgroups());
    left.retain(|name| of_ours(name));
    assert!(left.is_empty(), "processes and control groups of runs are left: {left:?}");
    let runs = platform.data().join("runs");
    let cleared = || async { names(&runs).is_empty().then_some(()) };
    eventually("the directories of runs are removed", CLEARED, cleared).await;
    let unfinished = left_behind(&platform.data().join("objects"));
    assert!(unfinished.is_empty(), "uploads and temporary files are left: {unfinished:?}");
}

/// Runs the n-th job to its end; its kind, and how long it took.
async fn run(api: &Api, n: usize) -> (&'static str, Job, Duration) {
    // At first what takes the most, as often as it can happen at once: chance would bring that
    // about at any time, and memory that grows to where it was wanted once is no leak.
    let kind = if n < AT_ONCE { &LARGE } else { &KINDS[n % KINDS.len()] };
    let began = Instant::now();
    let job = api.script(kind.script, (kind.more)()).await;
    if kind.cancelled {
        job.reaches("active", LATER).await;
        job.cancel().await;
    }
    let record = job.ends(LATER).await;
    let code = record["error_details"]["code"].as_str().unwrap_or_default();
    assert_eq!(record["status"], kind.status, "{}: {record}", kind.name);
    assert!(kind.code.is_empty() || code == kind.code, "{}: {record}", kind.name);
    (kind.name, job, began.elapsed())
}

/// All control groups; those of runs bear their names.
fn cgroups() -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(entry.path().display().to_string());
                left.push(entry.path());
            }
        }
    }
    found
}

/// What is called after a run in the directory of the runs, also while it is being filled. The
/// platform keeps two files of its own there.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !matches!(name.as_str(), ".ids" | ".cgroup")).collect()
}
