//! A control group for each run, in a parent that belongs to these run directories alone: two
//! platforms on one machine never touch each other's. A worker makes the group before the start;
//! the runner joins, empties and removes it. What a runner could not remove is removed here.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use errand_runner::cgroup::{self, Detected};
use errand_runner::{Cgroup, Life, Limits, RunDir, run_dir};
use uuid::Uuid;

use super::parse;
use crate::executor::{Error, RunName};

/// The file, beside the run directories, with the parent's id.
const ID: &str = ".cgroup";

/// Killing takes a moment; something in an uninterruptible wait may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The groups of one directory of runs.
#[derive(Clone, Default)]
pub(super) struct Groups {
    found: Detected,
    parent: String,
    max_processes: Option<u64>,
}

impl Groups {
    pub(super) fn new(
        runs: &Path,
        found: Detected,
        max_processes: Option<u64>,
    ) -> io::Result<Self> {
        // A copy of the directory has the same id, and another inode.
        let (id, inode) = (id(runs)?, fs::metadata(runs)?.ino());
        Ok(Self { found, parent: format!("errand-{}-{inode:x}", id.simple()), max_processes })
    }

    /// Makes the group of a run that is about to start, and notes it in the launch file.
    pub(super) fn make(&self, run: RunName, dir: &RunDir) -> Result<(), Error> {
        let mut launch = dir.launch()?;
        let Limits { cpu_millis, memory_bytes, .. } = launch.limits;
        let missing = self.found.missing();
        for (key, asked) in [("cpu", cpu_millis), ("memory", memory_bytes)] {
            if let (Some(reason), Some(_)) = (missing.get(key), asked) {
                return Err(Error::Unschedulable(format!(
                    "limits.{key} cannot be kept where the agent was to run: {reason}"
                )));
            }
        }
        let Some(group) = self.found.group(&self.parent, &run.to_string()) else {
            return Ok(());
        };
        launch.limits.processes = self.max_processes;
        group.make(&launch.limits)?;
        launch.cgroup = Some(group);
        Ok(dir.write_launch(&launch)?)
    }

    /// Ends whatever is in the group of a run, and removes it. A worker that was started in
    /// another group has others below it, so the one of the launch file counts too.
    pub(super) fn end(&self, run: &str, dir: &RunDir) -> io::Result<()> {
        let noted = dir.launch().ok().and_then(|launch| launch.cgroup);
        let noted = noted.filter(|group| group.is_of(&self.parent, run));
        let own = self.found.group(&self.parent, run);
        let groups = own.into_iter().chain(noted).collect::<Vec<Cgroup>>();
        groups.iter().try_for_each(|group| group.end(PATIENCE))
    }

    /// Ends the groups whose run is over or gone.
    pub(super) fn sweep(&self, runs: &Path) -> io::Result<()> {
        let directories = fs::read_dir(runs)?.flatten();
        let mut names = self.found.runs(&self.parent);
        names.extend(directories.filter_map(|entry| entry.file_name().into_string().ok()));
        for name in names.iter().filter(|name| parse(name).is_some()) {
            let dir = RunDir::new(runs.join(name));
            // One that has not begun may be about to be started by another worker beside us.
            let is_over = matches!(dir.life(), Ok(Life::Ended(_) | Life::Lost));
            if (is_over || !dir.root().exists())
                && let Err(error) = self.end(name, &dir)
            {
                tracing::warn!(run = name, %error, "could not remove a control group");
            }
        }
        Ok(())
    }
}

impl From<cgroup::Error> for Error {
    fn from(error: cgroup::Error) -> Self {
        match error {
            cgroup::Error::Make { .. } => Self::Unavailable(error.to_string()),
            cgroup::Error::Limit { .. } => Self::Unschedulable(error.to_string()),
        }
    }
}

/// The id of these run directories, made once.
fn id(runs: &Path) -> io::Result<Uuid> {
    let path = runs.join(ID);
    if !path.exists() {
        let made = runs.join(format!("{ID}.{}", Uuid::new_v4()));
        run_dir::write_atomically(&made, Uuid::new_v4().to_string().as_bytes(), 0o600)?;
        // Another worker may have been faster; then its id counts.
        let _ = fs::hard_link(&made, &path);
        fs::remove_file(&made)?;
    }
    let text = fs::read_to_string(&path)?;
    text.trim().parse().map_err(|_| {
        let path = path.display();
        let text = format!("{path} holds no UUID: remove it when none of its agents run");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}
