//! Keeps the agent apart: the Fabric host confines itself before it reads or does anything of the
//! agent, and everything that it starts inherits that.
//!
//! Which way is the executor's decision and stands in the launch. Here it is done, or refused with
//! its reason; nothing here falls back to less.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use errand_runner::{Launch, Network, RunDir, Sandbox};

mod landlocked;
mod network;
mod probe;
mod python;
mod reach;
mod user;

pub(crate) use probe::probe;
pub(crate) use python::interpreter;

/// Why an agent cannot be kept apart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot keep the agent apart: cannot {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
    #[error(
        "the agent's user cannot reach {path}, because {barrier} is closed to it, and nothing can \
         be mounted here ({source}): give the worker CAP_SYS_ADMIN, move data_dir, or open the \
         way with chmod o+x {barrier}"
    )]
    Closed { path: PathBuf, barrier: PathBuf, source: io::Error },
    #[error("cannot keep the agent apart with Landlock: {0}; Linux 6.2 or later has what it takes")]
    Landlock(String),
    #[error("cannot keep the agent from the network: {0}")]
    Network(String),
}

/// For `map_err`.
fn failed<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Error {
    move |source| Error::Io { doing, source: source.into() }
}

/// Confines this process, which must have no second thread, as the launch says. `python` is the
/// interpreter of the adapter.
pub(crate) fn enter(run: &RunDir, launch: &Launch, python: Option<&Path>) -> Result<(), Error> {
    let readable = readable(run, launch, python)?;
    let no_network = launch.network == Network::None;
    let mut isolated = !no_network;
    if no_network {
        isolated = network::own_namespace(&run.io())?;
    }
    match launch.sandbox {
        Sandbox::None => {}
        Sandbox::User { id } => {
            reach::open_up(run.root(), &readable, id)?;
            // The way that led here may be hidden by now.
            std::env::set_current_dir(run.base()).map_err(failed("enter the base directory"))?;
            user::become_user(id)?;
        }
        Sandbox::Landlock => landlocked::enter(run, &readable)?,
    }
    if no_network || launch.sandbox != Sandbox::None {
        rustix::thread::set_no_new_privs(true).map_err(failed("give up new privileges"))?;
    }
    if !isolated {
        network::refuse_sockets()?;
    }
    Ok(())
}

/// `PATH` without the directories that the agent's user cannot enter: for what is not found there,
/// a shell would say that it is not permitted.
pub(crate) fn usable_path(path: &OsStr, sandbox: Sandbox) -> OsString {
    let Sandbox::User { id } = sandbox else { return path.to_owned() };
    let usable = std::env::split_paths(path).filter(|dir| reach::is_open(dir, id));
    // Joining what was split cannot fail.
    std::env::join_paths(usable).unwrap_or_default()
}

/// What the processes of a run read outside of its directory and of the system. All of it is the
/// platform's choice: no variable of a job must open a directory.
/// Nor does the platform's choice open the platform's own data: what the run lies in is left out.
fn readable(run: &RunDir, launch: &Launch, python: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
    let program = std::env::current_exe().map_err(failed("find this program"))?;
    let mut readable = vec![program];
    readable.extend(launch.adapter_dirs.iter().map(PathBuf::from));
    readable.extend(launch.readable.iter().cloned());
    readable.extend(python.map(|it| python::places(it, run.root())).unwrap_or_default());
    readable.retain(|path| path.exists() && !contains(path, run.root()));
    Ok(readable)
}

/// Whether a path, which has no links, is a directory or lies below it.
fn contains(directory: &Path, path: &Path) -> bool {
    directory.canonicalize().is_ok_and(|directory| path.starts_with(directory))
}
