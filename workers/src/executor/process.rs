//! The `process` executor: the runner is a detached process on this machine, in its own session.
//! It survives the worker and is found again by its run directory's lock.

mod cgroups;
pub mod confinement;
mod ids;
mod leftovers;
mod shared;
mod stat;
mod supervisor;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use errand_runner::{Life, Moment, RunDir, Sandbox, run_dir};
use rustix::io::Errno;
use serde_json::Value;
use streams::id::Attempt;
use streams::snapshot::ObjectRef;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use self::cgroups::Groups;
use self::confinement::{Confinement, Kind};
use self::ids::Ids;
use super::cgroup::Detected;
use super::{Error, Executor, Places, RunName, RunPlan};
use crate::bundle::{self, Given, Owner, UnpackError, remove_tree};
use crate::store::{Store, drain};

/// How long a runner may take to pass its start gate.
const START: Duration = Duration::from_secs(20);

/// Ending of directories that are being filled, and the age from which nobody fills one.
const PARTIAL: &str = ".partial";
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// How often its directory is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// Runs agents as processes of this machine.
pub struct Process {
    /// Where run directories are made. Not below TMPDIR: codex refuses to work there.
    runs: PathBuf,
    /// The program `errand-runner`.
    runner: PathBuf,
    store: Store,
    groups: Groups,
    confinement: Confinement,
    ids: Ids,
}

impl Process {
    /// An executor with its run directories below `runs`. Its runs have no control groups.
    pub fn new(runs: PathBuf, runner: PathBuf, store: Store) -> io::Result<Self> {
        make(&runs)?;
        // Agents are told paths in it, and see what is mounted at its real place only.
        let runs = runs.canonicalize()?;
        // Another worker may be filling one beside us; what is old was left by one that died.
        for entry in fs::read_dir(&runs)?.filter_map(Result::ok) {
            let partial = entry.file_name().to_string_lossy().ends_with(PARTIAL);
            let age = entry.metadata().and_then(|meta| meta.modified()).map(|time| time.elapsed());
            if partial && age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT_BEHIND)) {
                remove_tree(&entry.path())?;
            }
        }
        let ids = Ids::new(&runs, Path::new(ids::machine::PLACE));
        let groups = Groups::default();
        let process =
            Self { runs, runner, store, groups, confinement: Confinement::default(), ids };
        process.ids.sweep()?;
        Ok(process)
    }

    /// The same, with a control group for each run; those of runs that are over are removed.
    pub fn in_groups(self, found: Detected, max_processes: Option<u64>) -> io::Result<Self> {
        let groups = Groups::new(&self.runs, found, max_processes)?;
        groups.sweep(&self.runs)?;
        Ok(Self { groups, ..self })
    }

    /// The same, with agents that are kept apart.
    pub fn confined(self, confinement: Confinement) -> Self {
        Self { confinement, ..self }
    }

    fn dir(&self, run: RunName) -> RunDir {
        RunDir::new(self.runs.join(run.to_string()))
    }

    fn partial(&self, run: RunName) -> RunDir {
        RunDir::new(partial(&self.runs, &run.to_string()))
    }

    /// Fills a directory under another name and renames it, so that a run directory that has
    /// its name is whole.
    async fn fill(&self, run: RunName, plan: &RunPlan) -> Result<(), Error> {
        let partial = self.partial(run);
        if partial.root().exists() {
            remove_tree(partial.root())?;
        }
        let workspace = below_base(&partial, &plan.launch.agent, "workspace")?;
        below_base(&partial, &plan.launch.agent, "artifacts")?;
        make(partial.root())?;
        for directory in [partial.base(), partial.home(), partial.tmp()] {
            fs::create_dir_all(directory)?;
        }
        let sandbox = self.sandbox(run)?;
        let owner = Owner(match sandbox {
            Sandbox::User { id } => Some(id),
            Sandbox::Landlock | Sandbox::None => None,
        });
        let mut given = Given::create(partial.root())?;
        // The agent's own files first: the working directory may lie among them.
        if let Some(ethos) = &plan.ethos {
            if let Ok(within) = workspace.strip_prefix(partial.base()) {
                given.set_within(within.as_os_str().as_bytes());
            }
            given = self.unpack(ethos, partial.base(), owner, given).await?;
            given.set_within(b"");
        }
        run_dir::make_inside(&partial.base(), &workspace)?;
        let given = self.unpack(&plan.workdir, workspace, owner, given).await?;
        spawn_blocking(move || given.finish()).await.map_err(io::Error::other)??;
        let mut launch = plan.launch.clone();
        launch.sandbox = sandbox;
        launch.network = self.confinement.network;
        partial.write_launch(&launch)?;
        fs::rename(partial.root(), self.dir(run).root())?;
        File::open(&self.runs)?.sync_all()?;
        Ok(())
    }

    /// Takes back what a filling has left that failed. When it failed behind the renaming, the
    /// run is there, and its user stays its own.
    fn undo(&self, run: RunName) {
        let _ = remove_if_there(self.partial(run).root());
        let _ = self.ids.free(&run.to_string());
    }

    fn sandbox(&self, run: RunName) -> io::Result<Sandbox> {
        Ok(match &self.confinement.kind {
            Kind::Users(range, _) => Sandbox::User { id: self.ids.take(*range, &run.to_string())? },
            Kind::Landlock => Sandbox::Landlock,
            Kind::Waived | Kind::Impossible(_) => Sandbox::None,
        })
    }

    /// Unpacks a bundle, and notes what the agent is given with it.
    async fn unpack(
        &self,
        bundle: &ObjectRef,
        into: PathBuf,
        owner: Owner,
        mut given: Given,
    ) -> Result<Given, Error> {
        let object = self.store.fetch(bundle).await?.ok_or_else(|| {
            Error::Impossible(format!("bundle {} is not in the object store", bundle.key))
        })?;
        let mut body = object.into_read();
        let unpacking = spawn_blocking(move || {
            let unpacked = bundle::unpack_given(&mut body, &into, owner, &mut given);
            drain(body).map_err(|error| Error::Unavailable(error.to_string()))?;
            Ok::<_, Error>(unpacked.map(|_| given))
        });
        match unpacking.await.map_err(|error| Error::Unavailable(error.to_string()))?? {
            Ok(given) => Ok(given),
            Err(UnpackError::Io(error)) => Err(error.into()),
            Err(error) => Err(Error::Impossible(error.to_string())),
        }
    }

    fn spawn(&self, dir: &RunDir) -> Result<Child, Error> {
        let errors = File::create(dir.root().join("runner.err"))?;
        Command::new(&self.runner)
            .arg("supervise")
            .arg(dir.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .kill_on_drop(false)
            .spawn()
            .map_err(|error| {
                let runner = self.runner.display();
                Error::Unavailable(format!("cannot start {runner}: {error}"))
            })
    }
}

#[async_trait]
impl Executor for Process {
    async fn look(&self, run: RunName) -> Result<Life, Error> {
        Ok(self.dir(run).life()?)
    }

    async fn is_prepared(&self, run: RunName) -> Result<bool, Error> {
        Ok(self.dir(run).root().exists())
    }

    async fn prepare(&self, run: RunName, plan: &RunPlan) -> Result<(), Error> {
        if self.is_prepared(run).await? {
            return Ok(());
        }
        if let (Some(refused), false) =
            (self.confinement.secrets_refused(), plan.secrets.variables.is_empty())
        {
            return Err(Error::Impossible(refused));
        }
        let filled = self.fill(run, plan).await;
        if filled.is_err() {
            self.undo(run);
        }
        filled
    }

    async fn start(&self, run: RunName, plan: &RunPlan, held: Instant) -> Result<(), Error> {
        let dir = self.dir(run);
        if dir.life()? != Life::Fresh {
            return Ok(());
        }
        self.groups.make(run, &dir)?;
        dir.renew_lease(moment(held))?;
        let unlink = || {
            let _ = fs::remove_file(dir.secrets());
        };
        // Last before the start.
        if !plan.secrets.is_empty() {
            run_dir::write_json(&dir.secrets(), &plan.secrets, 0o600)?;
        }
        dir.reopen()?;
        let mut child = self.spawn(&dir).inspect_err(|_| unlink())?;
        // The runner takes them off the disk. A worker that is stopped while it waits here must
        // not take them from it, so they are removed only where no runner is left to do it.
        let begun = begun(&dir, &mut child).await;
        if begun.is_err() && !matches!(child.try_wait(), Ok(None)) {
            unlink();
        }
        // Somebody must wait for it, or it stays a zombie for as long as this worker lives.
        tokio::spawn(async move { child.wait().await });
        begun
    }

    async fn renew(&self, run: RunName, held: Instant) -> Result<(), Error> {
        let dir = self.dir(run);
        // While it is being filled there is nothing to renew.
        if dir.root().exists() { Ok(dir.renew_lease(moment(held))?) } else { Ok(()) }
    }

    async fn stop(&self, run: RunName, reason: &str) -> Result<(), Error> {
        Ok(self.dir(run).ask_to_stop(reason)?)
    }

    async fn close(&self, run: RunName) -> Result<bool, Error> {
        let dir = self.dir(run);
        let is_closed = dir.close()?;
        if is_closed && dir.secrets().exists() {
            // The runner that was to take them off the disk does not come so far.
            fs::remove_file(dir.secrets())?;
        }
        Ok(is_closed)
    }

    async fn end_runner(&self, run: RunName) -> Result<(), Error> {
        Ok(supervisor::kill(&self.dir(run))?)
    }

    async fn sweep(&self, run: RunName) -> Result<(), Error> {
        let (dir, groups, ids) = (self.dir(run), self.groups.clone(), self.ids.clone());
        let sweep = move || end(run, &dir, &groups, &ids);
        let swept = spawn_blocking(sweep).await;
        swept.map_err(|error| Error::Unavailable(error.to_string()))?.map_err(Error::from)
    }

    fn places(&self, run: RunName, agent: &Value) -> Result<Places, Error> {
        let dir = self.dir(run);
        Ok(Places {
            root: dir.root().to_owned(),
            workdir: below_base(&dir, agent, "workspace")?,
            artifacts: below_base(&dir, agent, "artifacts")?,
            log: dir.log(),
        })
    }

    async fn remove(&self, run: RunName) -> Result<(), Error> {
        let (dir, groups, ids) = (self.dir(run), self.groups.clone(), self.ids.clone());
        if dir.life()? == Life::Running {
            dir.ask_to_stop("its directory is to be removed")?;
            return Err(Error::Unavailable(format!("run {run} has yet to stop")));
        }
        let partial = self.partial(run);
        let remove = move || {
            end(run, &dir, &groups, &ids)?;
            if let Some(user) = ids.of(&run.to_string())? {
                shared::remove_of(user);
            }
            // A worker that lost the claim while it filled one left it.
            remove_if_there(partial.root())?;
            remove_if_there(dir.root())?;
            ids.free(&run.to_string())
        };
        let removed = spawn_blocking(remove).await;
        removed.map_err(|error| Error::Unavailable(error.to_string()))?.map_err(Error::from)
    }

    async fn runs(&self) -> Result<Vec<RunName>, Error> {
        let names = fs::read_dir(&self.runs)?.filter_map(Result::ok);
        Ok(names.filter_map(|entry| parse(whole(entry.file_name().to_str()?))).collect())
    }
}

/// An instant as the runner knows it. Should this process be paused here, it comes out earlier.
fn moment(instant: Instant) -> Moment {
    let now = Moment::now();
    now.before(instant.elapsed())
}

/// Waits until a runner has begun, or has ended without.
async fn begun(dir: &RunDir, child: &mut Child) -> Result<(), Error> {
    let deadline = Instant::now() + START;
    while is_starting(dir)? {
        if let Some(status) = child.try_wait()? {
            let said = fs::read_to_string(dir.root().join("runner.err")).unwrap_or_default();
            return Err(Error::Unavailable(format!("the runner ended at once: {status}: {said}")));
        }
        if Instant::now() > deadline {
            return Err(Error::Unavailable("the runner did not start in time".to_owned()));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Whether the runner has yet to pass its start gate, or to take its secrets.
fn is_starting(dir: &RunDir) -> io::Result<bool> {
    Ok(match dir.life()? {
        Life::Fresh => true,
        Life::Running => dir.secrets().exists(),
        Life::Ended(_) | Life::Lost => false,
    })
}

/// The name of a run directory, also of one that was not filled to the end: whoever filled it may
/// have been killed, and its job have come to an end without it.
fn whole(name: &str) -> &str {
    name.strip_prefix('.').and_then(|name| name.strip_suffix(PARTIAL)).unwrap_or(name)
}

/// `<job uuid>-<attempt>`, as run directories are called.
fn parse(name: &str) -> Option<RunName> {
    let (job, attempt) = name.rsplit_once('-')?;
    Some(RunName { job: job.parse().ok()?, attempt: Attempt(attempt.parse().ok()?) })
}

/// `environment.workspace` or `.artifacts` of the agent, which must lie below the base.
fn below_base(dir: &RunDir, agent: &Value, name: &str) -> Result<PathBuf, Error> {
    let path = agent["environment"][name].as_str().unwrap_or(name);
    run_dir::below(&dir.base(), Path::new(path)).ok_or_else(|| {
        let reason = format!("Local {name} path must remain within the agent base directory.");
        Error::Impossible(reason)
    })
}

/// Makes a directory that nobody else sees into.
fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Where the directory of a run is while it is filled.
fn partial(runs: &Path, run: &str) -> PathBuf {
    runs.join(format!(".{run}{PARTIAL}"))
}

/// Ends whatever is left of a run. Its user is the one that is noted as taken: the run's own
/// description may be gone, or not what it was.
fn end(run: RunName, dir: &RunDir, groups: &Groups, ids: &Ids) -> io::Result<()> {
    let run = run.to_string();
    groups.end(&run, dir)?;
    leftovers::end(&run, ids.of(&run)?)
}

fn remove_if_there(directory: &Path) -> io::Result<()> {
    if directory.exists() { remove_tree(directory) } else { Ok(()) }
}

/// What a bundle or a name does to the disk once, it does again.
const LASTING: [Errno; 7] = [
    Errno::NAMETOOLONG,
    Errno::NOTDIR,
    Errno::ISDIR,
    Errno::LOOP,
    Errno::INVAL,
    Errno::ILSEQ,
    Errno::FBIG,
];

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, StorageFull, UnexpectedEof};
        let code = error.raw_os_error();
        let lasting = LASTING.iter().any(|errno| code == Some(errno.raw_os_error()));
        match error.kind() {
            StorageFull => Self::Full(format!("no space left where agents run: {error}")),
            InvalidData | InvalidInput | UnexpectedEof => Self::Impossible(error.to_string()),
            _ if lasting => Self::Impossible(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
