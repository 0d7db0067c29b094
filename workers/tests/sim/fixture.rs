//! What all worlds of a test share on the disk: a run directory that has ended, an action that is
//! a program, and a directory for each world, with the locks of its workers and the logs of its
//! runs. Nothing else of a world is on a disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use workers::actions::{Registry, Webhooks};
use workers::executor::Places;

/// The kind of the action that is a program.
pub(crate) const PROGRAM: &str = "sim.program";

/// Lines of the log that every run leaves.
pub(crate) const LOG_LINES: u64 = 2;

pub(crate) struct Fixture {
    directory: TempDir,
    actions: Arc<Registry>,
    worlds: AtomicU64,
}

impl Fixture {
    /// In memory, where the system has a place for that.
    pub(crate) fn new() -> Arc<Self> {
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let directory = TempDir::with_prefix_in("errand-sim-", base).expect("a directory");
        let run = directory.path().join("run");
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().expect("it lies in one")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        let line = |n: u64| {
            let at = "2026-01-01T00:00:00Z";
            json!({"n": n, "at": at, "stream": "stdout", "text": format!("line {n}")}).to_string()
        };
        let lines: Vec<_> = (1..=LOG_LINES).map(line).collect();
        write(run.join("agent.log"), &(lines.join("\n") + "\n"));
        write(run.join("base/workspace/answer.txt"), "42\n");
        write(run.join("base/artifacts/fabric.json"), "{}\n");
        write(run.join("base/scratch/output_workdir/answer.txt"), "42\n");
        write(run.join("base/scratch/results/report.txt"), "done\n");
        let manifest = json!({
            "kind": PROGRAM,
            "title": "A program",
            "description": "Is never really run.",
            "command": ["true"],
            "timeout_seconds": 30.0,
        });
        let actions = directory.path().join("actions");
        write(actions.join("program/action.json"), &manifest.to_string());
        let built_in = Registry::built_in(Webhooks::new(false));
        let actions = Arc::new(built_in.install(&actions).expect("the manifest is one"));
        Arc::new(Self { directory, actions, worlds: AtomicU64::new(0) })
    }

    /// The actions that are installed in every world.
    pub(crate) fn actions(&self) -> Arc<Registry> {
        Arc::clone(&self.actions)
    }

    /// A directory of one more world.
    pub(crate) fn world(&self) -> PathBuf {
        let number = self.worlds.fetch_add(1, Ordering::Relaxed);
        self.directory.path().join(format!("world-{number}"))
    }

    /// Where the things of a run are, and its log.
    pub(crate) fn places(&self, agent: &Value, log: PathBuf) -> Places {
        let root = self.directory.path().join("run");
        let base = root.join("base");
        let workdir = base.join(agent["environment"]["workspace"].as_str().unwrap_or("workspace"));
        Places { artifacts: base.join("artifacts"), workdir, log, root }
    }

    /// Writes a log, all of it, unless that was done.
    pub(crate) fn write_log(&self, log: &Path) {
        match fs::hard_link(self.directory.path().join("run/agent.log"), log) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => panic!("{error}"),
            _ => {}
        }
    }
}
