//! Control groups of runs, with the real runner: what is limited, what is swept, and whom nobody
//! touches.

use std::collections::BTreeSet;

use errand_runner::run_dir::Identity;
use errand_runner::{Cgroup, End, Failure, Limits as RunLimits};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::*;
use crate::executor::cgroup::detect;

const SOON: Duration = Duration::from_secs(60);

/// A directory of runs and who starts them.
struct Place {
    directory: TempDir,
    process: Process,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let process = Self::process(directory.path());
        Self { directory, process }
    }

    /// One more worker at this place.
    fn process(directory: &Path) -> Process {
        Process::new(directory.join("runs"), runner(), no_store())
            .and_then(|process| process.in_groups(detect(), Some(100)))
            .expect("a directory can be made")
    }

    fn another_worker(&self) -> Process {
        Self::process(self.directory.path())
    }

    /// Fills a run directory by hand; nothing is fetched.
    fn prepare(&self, script: &str, limits: RunLimits) -> RunName {
        let run = RunName { job: JobId::new(), attempt: Attempt::FIRST };
        let dir = self.process.dir(run);
        fs::create_dir_all(dir.base()).expect("a directory can be made");
        fs::write(dir.base().join("agent.sh"), script).expect("it is written");
        let mut launch = plan().launch;
        launch.run = run.to_string();
        launch.limits = limits;
        launch.timeout_seconds = 600.0;
        launch.lease_seconds = Some(600.0);
        launch.agent = json!({
            "config_format": "nemo-agents-spec-v1", "name": "a", "default_harness": "script",
            "harnesses": {"script": {
                "kind": "script", "settings": {"command": ["/bin/sh", "agent.sh"]},
            }},
        });
        dir.write_launch(&launch).expect("it is written");
        run
    }

    /// A run whose agent sleeps under two numbers, one of them out of its session.
    async fn sleeping(&self, argument: &str) -> RunName {
        let script =
            format!("(env -i /usr/bin/setsid /bin/sleep {argument}1 & :); exec sleep {argument}2");
        let run = self.prepare(&script, RunLimits::default());
        self.process.start(run, &plan(), Instant::now()).await.expect("it starts");
        let both = || ["1", "2"].iter().all(|it| sleeps(&format!("{argument}{it}")));
        until("it sleeps", both).await;
        run
    }

    fn group(&self, run: RunName) -> Cgroup {
        let launch = self.process.dir(run).launch().expect("it is there");
        launch.cgroup.expect("it has a group")
    }
}

/// The program that is built beside the tests.
fn runner() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let built = own.ancestors().nth(2).expect("it lies in target/…/deps").join("errand-runner");
    assert!(built.exists(), "no {}: cargo build --workspace --bins", built.display());
    built
}

fn paths(group: &Cgroup) -> BTreeSet<PathBuf> {
    match group {
        Cgroup::V2 { path } => BTreeSet::from([path.clone()]),
        Cgroup::V1 { paths } => paths.values().cloned().collect(),
    }
}

fn is_gone(group: &Cgroup) -> bool {
    paths(group).iter().all(|path| !path.exists() && !path.parent().is_some_and(Path::exists))
}

/// The words of every process, each with a zero byte at its end.
fn commands() -> impl Iterator<Item = Vec<u8>> {
    let processes = fs::read_dir("/proc").expect("a Linux machine").flatten();
    processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok())
}

/// How many processes have exactly this argument. One that becomes another program has none for a
/// moment.
fn running(argument: &str) -> usize {
    let has =
        |command: &Vec<u8>| command.split(|byte| *byte == 0).any(|it| it == argument.as_bytes());
    commands().filter(has).count()
}

/// Whether a process sleeps under this number, and is `env` or `setsid` no more.
fn sleeps(argument: &str) -> bool {
    let wanted = ["sleep", "/bin/sleep"].map(|program| format!("{program}\0{argument}\0"));
    commands().any(|command| wanted.iter().any(|it| it.as_bytes() == command))
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(LOOK).await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

#[tokio::test]
async fn a_limit_that_nothing_keeps_here_is_refused() {
    let mut place = Place::new();
    place.process.groups = Groups::default();
    for (limits, key) in [
        (RunLimits { cpu_millis: Some(500), ..RunLimits::default() }, "limits.cpu"),
        (RunLimits { memory_bytes: Some(1 << 26), ..RunLimits::default() }, "limits.memory"),
    ] {
        let run = place.prepare("echo never", limits);
        let error =
            place.process.start(run, &plan(), Instant::now()).await.expect_err("it cannot be kept");
        assert!(matches!(error, Error::Unschedulable(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with(key) && text.contains("Delegate=yes"), "{text}");
        assert_eq!(place.process.look(run).await.expect("it is there"), Life::Fresh);
    }
}

#[tokio::test]
async fn case_b6_a_start_that_is_dropped_leaves_nothing_or_a_run_that_is_found_again() {
    for (number, waited) in [None, Some(0), Some(1), Some(20), Some(200)].into_iter().enumerate() {
        let place = Place::new();
        let argument = format!("7788{number}");
        let script = format!("(setsid sleep {argument} & :); sleep 600");
        let run = place.prepare(&script, RunLimits::default());
        let dir = place.process.dir(run);
        let mut launch = dir.launch().expect("it is there");
        launch.lease_seconds = Some(10.0);
        dir.write_launch(&launch).expect("it is written");
        let plan = plan();
        let start = place.process.start(run, &plan, Instant::now());
        match waited {
            None => drop(start),
            Some(millis) => drop(timeout(Duration::from_millis(millis), start).await),
        }
        let supervisor = dir.root().display().to_string();
        until("it has begun, or never will", || {
            dir.life().expect("it can be read") != Life::Fresh || running(&supervisor) == 0
        })
        .await;
        let other = place.another_worker();
        match waited {
            None => {
                assert_eq!(other.look(run).await.expect("it is there"), Life::Fresh);
                assert_eq!(dir.launch().expect("it is there").cgroup, None);
            }
            Some(_) => {
                // Nobody renews its lease, and so it ends by itself, with all that it started.
                let over = || matches!(dir.life().expect("it can be read"), Life::Ended(_));
                until("its lease has run out", over).await;
                let Ok(Life::Ended(outcome)) = other.look(run).await else {
                    panic!("it has ended")
                };
                let seen = (outcome.end, outcome.failure);
                assert_eq!(seen, (End::Stopped, Some(Failure::WorkerLost)), "{outcome:?}");
                assert!(is_gone(&place.group(run)));
            }
        }
        assert_eq!(running(&argument), 0);
    }
}

#[tokio::test]
async fn only_groups_of_our_own_dead_runs_are_swept() {
    let (ours, theirs) = (Place::new(), Place::new());
    let alive = ours.sleeping("77891").await;
    let dead = ours.sleeping("77892").await;
    let foreign = theirs.sleeping("77893").await;
    let supervisor = ours.process.dir(dead).identity().expect("it has said who it is").pid;
    kill_process(Pid::from_raw(supervisor).expect("a process id"), Signal::KILL)
        .expect("it is ours");
    until("it is lost", || ours.process.dir(dead).life().is_ok_and(|life| life == Life::Lost))
        .await;
    assert_eq!(running("778921"), 1, "what has left everything but its group is still there");
    // The dead run says that the group of the foreign one was its own.
    let dir = ours.process.dir(dead);
    let (own, others) = (ours.group(dead), theirs.group(foreign));
    let mut launch = dir.launch().expect("it is there");
    launch.cgroup = Some(others.clone());
    dir.write_launch(&launch).expect("it is written");

    let other = ours.another_worker();
    assert_eq!(running("778921"), 0);
    assert!(paths(&own).iter().all(|path| !path.exists()));
    other.sweep(dead).await.expect("nothing is left of it");
    other.remove(dead).await.expect("its directory can be removed");
    for argument in ["778911", "778912", "778931", "778932"] {
        assert_eq!(running(argument), 1, "{argument}");
    }
    assert!(!others.members().is_empty());

    for (place, run) in [(&ours, alive), (&theirs, foreign)] {
        let group = place.group(run);
        place.process.stop(run, "cancel").await.expect("it can be asked");
        let over = || place.process.dir(run).life().is_ok_and(|life| life != Life::Running);
        until("it has ended", over).await;
        assert!(is_gone(&group));
    }
    let left = ["778911", "778912", "778922", "778931", "778932"];
    assert_eq!(left.map(running), [0; 5]);
}

/// A number that is somebody else's by now is left alone.
#[tokio::test]
async fn a_supervisor_that_hangs_is_ended_and_nobody_else() {
    let place = Place::new();
    let run = place.sleeping("77894").await;
    let dir = place.process.dir(run);
    let identity = dir.identity().expect("it has said who it is");
    let supervisor = Pid::from_raw(identity.pid).expect("a process id");
    kill_process(supervisor, Signal::STOP).expect("it is ours");
    for other in [
        Identity { start_time: identity.start_time + 1, ..identity.clone() },
        Identity { boot_id: "another".to_owned(), ..identity.clone() },
    ] {
        let other = serde_json::to_vec(&other).expect("it is JSON");
        fs::write(dir.started(), other).expect("it is written");
        place.process.end_runner(run).await.expect("there is nothing to do");
        assert_eq!(dir.life().expect("it can be read"), Life::Running);
    }
    let own = serde_json::to_vec(&identity).expect("it is JSON");
    fs::write(dir.started(), own).expect("it is written");
    place.process.end_runner(run).await.expect("it is ours");
    until("it is lost", || dir.life().is_ok_and(|life| life == Life::Lost)).await;
    place.process.sweep(run).await.expect("nothing is left of it");
    assert_eq!(["778941", "778942"].map(running), [0; 2]);
}

#[tokio::test]
async fn a_run_whose_runner_never_began_leaves_no_group() {
    let mut place = Place::new();
    place.process.runner = place.directory.path().join("no-runner");
    let run = place.prepare("echo never", RunLimits::default());
    place.process.start(run, &plan(), Instant::now()).await.expect_err("there is no runner");
    let group = place.group(run);
    assert!(paths(&group).iter().all(|path| path.exists()));
    // One that has not begun may be started yet by whoever else works here.
    let other = place.another_worker();
    assert!(paths(&group).iter().all(|path| path.exists()));
    other.remove(run).await.expect("it can be removed");
    assert!(is_gone(&group));
}
