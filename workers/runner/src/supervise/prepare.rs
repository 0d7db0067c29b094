//! Before the start: reads the launch, takes the secrets away, makes the directories, and starts
//! the Fabric host in a clean environment.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use errand_runner::{Failure, Launch, RunDir, Secrets, run_dir};
use rustix::process::getpid;

use super::{allowed_variables, ownership};
use crate::agent_dirs::{self, AgentDirs};
use crate::confine;
use crate::report::Raised;
use crate::tail::tail;

/// The launch format that this program reads.
const VERSION: u32 = 1;

/// Bytes of the host's own words that are passed on.
const HOST_WORDS: usize = 2048;

/// What a run needs to begin.
pub(super) struct Prepared {
    pub(super) launch: Launch,
    pub(super) secrets: Secrets,
    pub(super) dirs: AgentDirs,
}

/// Why it cannot begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read {file}: {source}")]
    Read { file: &'static str, source: io::Error },
    #[error("launch.json has version {0}, this runner reads version {VERSION}: use one release")]
    Version(u32),
    #[error("the variable {0:?} cannot be passed on: a name is not empty and has no `=` or NUL")]
    Variable(String),
    #[error("the variable {0:?} cannot be passed on: it is the dynamic loader's; rename it")]
    Loader(String),
    #[error(transparent)]
    Dirs(#[from] agent_dirs::Error),
    #[error("cannot {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

impl Error {
    /// In the words of the outcome.
    pub(super) fn raised(&self) -> Raised {
        let full = match self {
            Self::Read { source, .. }
            | Self::Io { source, .. }
            | Self::Dirs(agent_dirs::Error::Create { source, .. }) => {
                source.kind() == io::ErrorKind::StorageFull
            }
            Self::Version(_) | Self::Variable(_) | Self::Loader(_) | Self::Dirs(_) => false,
        };
        let failure = if full { Failure::DiskFull } else { Failure::AgentFailed };
        Raised::refused(failure, self.to_string())
    }
}

/// Reads everything and makes everything that the host needs.
pub(super) fn prepare(run: &RunDir) -> Result<Prepared, Error> {
    // The secrets go first: whatever fails later, they are off the disk.
    let secrets = take_secrets(run)?;
    let launch = run.launch().map_err(|source| Error::Read { file: "launch.json", source })?;
    if launch.version != VERSION {
        return Err(Error::Version(launch.version));
    }
    for (name, value) in launch.env.iter().chain(&secrets.variables) {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::Variable(name.clone()));
        }
        // It would act in the host, which is not confined yet. Nobody can submit it any more.
        if name.starts_with("LD_") {
            return Err(Error::Loader(name.clone()));
        }
    }
    let doing = "create the agent's HOME and TMPDIR";
    for dir in [run.base(), run.home(), run.tmp(), run.io()] {
        fs::create_dir_all(dir).map_err(|source| Error::Io { doing, source })?;
    }
    let dirs = AgentDirs::of(&run.base(), &launch.agent)?;
    dirs.create(&run.base())?;
    let doing = "give the agent's directories to its user";
    ownership::settle(run, &dirs, launch.sandbox).map_err(|source| Error::Io { doing, source })?;
    Ok(Prepared { launch, secrets, dirs })
}

fn take_secrets(run: &RunDir) -> Result<Secrets, Error> {
    let file = "secrets.json";
    let path = run.secrets();
    let secrets = match run_dir::read_json(&path) {
        Ok(secrets) => secrets,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Secrets::default()),
        Err(source) => {
            // A file that is no JSON may well hold a secret.
            let _ = fs::remove_file(&path);
            return Err(Error::Read { file, source });
        }
    };
    fs::remove_file(&path).map_err(|source| Error::Read { file, source })?;
    Ok(secrets)
}

/// Starts the host. It inherits no variable but those named here.
pub(super) fn start_host(run: &RunDir, prepared: &Prepared) -> Result<Child, Error> {
    let launch = &prepared.launch;
    let python = confine::interpreter(launch);
    let spawn = || {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("host")
            .arg(run.root())
            .arg(getpid().to_string())
            .arg(python.as_deref().unwrap_or(Path::new("")))
            .args(prepared.secrets.variables.keys())
            .current_dir(run.base())
            .env_clear()
            .envs(allowed_variables())
            .envs(&launch.env)
            .envs(&prepared.secrets.variables)
            .env("HOME", run.home())
            .env("TMPDIR", run.tmp())
            .env("ERRAND_RUN", &launch.run)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(private_file(&host_stderr_path(run))?);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", confine::usable_path(&path, launch.sandbox));
        }
        if let Some(python) = &python {
            command.env("ADAPTER_PYTHON", python);
        }
        command.spawn()
    };
    spawn().map_err(|source| Error::Io { doing: "start the Fabric host", source })
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The last words of the host itself, such as a failed clean-up or a panic.
pub(super) fn host_words(run: &RunDir) -> String {
    let words = run_dir::read_regular(&host_stderr_path(run)).unwrap_or_default();
    String::from_utf8_lossy(tail(&words, HOST_WORDS)).trim().to_owned()
}

fn host_stderr_path(run: &RunDir) -> PathBuf {
    run.root().join("host.stderr")
}
