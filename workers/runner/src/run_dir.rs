//! The run directory: its names, its locks, and who is alive in it.
//!
//! The agent may be able to write here. Files are therefore opened without following links and
//! without waiting, must be regular, and are read up to a bound; what is not as it must be counts
//! as a lost run, never as an error that is tried again for ever.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Launch, Moment, Outcome};

/// Who holds `started`; used for signals only, never as a proof of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Process id of the supervisor.
    pub pid: i32,
    /// `/proc/sys/kernel/random/boot_id`; a pid of another boot means nothing.
    pub boot_id: String,
    /// Field 22 of `/proc/PID/stat`, in clock ticks since boot; tells a recycled pid.
    pub start_time: u64,
}

/// What a look at the directory says.
#[derive(Clone, Debug, PartialEq)]
pub enum Life {
    /// No supervisor has started here.
    Fresh,
    /// The supervisor holds its lock.
    Running,
    /// It wrote its outcome.
    Ended(Box<Outcome>),
    /// It started, is gone, and left no outcome: this attempt is lost.
    Lost,
}

/// Where `started` leads while the gate is closed. To nothing: a link is made in one go, and
/// whoever comes to the gate finds it taken.
const CLOSED: &str = "closed";

/// One attempt's directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// Names the directory; touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Fabric's base directory: the agent's own files.
    pub fn base(&self) -> PathBuf {
        self.root.join("base")
    }

    /// HOME of the agent.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// TMPDIR of the agent; outside the base (codex refuses to work otherwise).
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// What the Fabric host and our adapter write for the supervisor.
    pub fn io(&self) -> PathBuf {
        self.root.join("io")
    }

    /// The masked log.
    pub fn log(&self) -> PathBuf {
        self.root.join("agent.log")
    }

    /// The file that says when somebody was last known to hold the claim.
    pub fn lease(&self) -> PathBuf {
        self.root.join("lease")
    }

    /// The file that asks for the end.
    pub fn stop(&self) -> PathBuf {
        self.root.join("stop")
    }

    /// The start gate.
    pub fn started(&self) -> PathBuf {
        self.root.join("started")
    }

    /// The values of secret variables; unlinked before the agent starts.
    pub fn secrets(&self) -> PathBuf {
        self.root.join("secrets.json")
    }

    /// Space that was set aside for how the run ends, should the agent fill the disk. It lies where
    /// the host and our adapter can remove it.
    pub fn reserve(&self) -> PathBuf {
        self.io().join("reserve")
    }

    /// Reads `launch.json`.
    pub fn launch(&self) -> io::Result<Launch> {
        read_json(&self.root.join("launch.json"))
    }

    /// Writes `launch.json`, atomically.
    pub fn write_launch(&self, launch: &Launch) -> io::Result<()> {
        write_json(&self.root.join("launch.json"), launch, 0o600)
    }

    /// Writes the outcome, atomically; the last thing a supervisor does.
    pub fn write_outcome(&self, outcome: &Outcome) -> io::Result<()> {
        write_json(&self.root.join("outcome.json"), outcome, 0o600)
    }

    /// Asks the supervisor to end the run; asking twice is harmless. On a full disk the reason
    /// is left out: an empty file says `cancel`.
    pub fn ask_to_stop(&self, reason: &str) -> io::Result<()> {
        write_atomically(&self.stop(), reason.as_bytes(), 0o600)
            .or_else(|_| File::create(self.stop()).map(drop))
    }

    /// Renews the lease: at this moment the claim was held. A lease that is there is written over,
    /// which works on a full disk too.
    pub fn renew_lease(&self, held: Moment) -> io::Result<()> {
        let mut lease = OpenOptions::new();
        lease.write(true).create(true).truncate(false).mode(0o600);
        lease.open(self.lease())?.write_all_at(held.to_string().as_bytes(), 0)
    }

    /// When the claim was held, by the lease; `None` when there is none that can be read.
    pub fn lease_renewed(&self) -> Option<Moment> {
        String::from_utf8(read_regular(&self.lease()).ok()?).ok()?.parse().ok()
    }

    /// The start gate: succeeds for exactly one caller, ever, and stays locked until the returned
    /// file is closed. The file is closed on exec, so no child inherits the lock.
    ///
    /// The file is locked under another name and then linked, so that nobody ever sees a
    /// `started` that is not locked yet.
    pub fn start(&self, identity: &Identity) -> io::Result<File> {
        let partial = self.root.join(format!(".started.{}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(&serde_json::to_vec(identity)?)?;
        file.sync_all()?;
        let linked = fs::hard_link(&partial, self.started());
        fs::remove_file(&partial)?;
        linked?;
        File::open(&self.root)?.sync_all()?;
        Ok(file)
    }

    /// Closes the start gate: a supervisor that is on its way to it ends there. False when one was
    /// faster. A closed gate is [`Life::Fresh`], until it is opened again.
    pub fn close(&self) -> io::Result<bool> {
        match std::os::unix::fs::symlink(CLOSED, self.started()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(self.is_closed()),
            closed => closed.map(|()| true),
        }
    }

    /// Opens the start gate if it was closed.
    pub fn reopen(&self) -> io::Result<()> {
        if self.is_closed() { fs::remove_file(self.started()) } else { Ok(()) }
    }

    fn is_closed(&self) -> bool {
        fs::read_link(self.started()).is_ok_and(|link| link == Path::new(CLOSED))
    }

    /// Who started here, if anybody did and got as far as to say so.
    pub fn identity(&self) -> Option<Identity> {
        read_json(&self.started()).ok()
    }

    /// Looks whether the run is fresh, alive, ended or lost.
    pub fn life(&self) -> io::Result<Life> {
        // The outcome is read only when the lock is free: it is the last thing that a supervisor
        // writes, and until it is gone nobody else's word counts.
        match open_regular(&self.started()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Life::Fresh),
            Err(error) if is_passing(&error) => return Err(error),
            Err(_) if self.is_closed() => return Ok(Life::Fresh),
            Err(_) => return Ok(Life::Lost),
            Ok(file) => match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => {}
                // Whatever else stands here by now, it is not over.
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Life::Running),
                Err(error) => return Err(error.into()),
            },
        }
        match read_json(&self.root.join("outcome.json")) {
            Ok(outcome) => Ok(Life::Ended(Box::new(outcome))),
            Err(error) if is_passing(&error) => Err(error),
            Err(_) => Ok(Life::Lost),
        }
    }
}

/// A path as it is written, below the base; none when it is absolute or leads out. `..` takes the
/// name before it back, whatever is on the disk.
pub fn below(base: &Path, written: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in written.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => return None,
            Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.pop().then_some(())?,
        }
    }
    Some(base.join(path))
}

/// Makes a directory below `base` with its parents. A link on the way may lead elsewhere in the
/// base, but not out of it: nothing is made outside.
pub fn make_inside(base: &Path, directory: &Path) -> io::Result<()> {
    let there = directory.ancestors().find(|path| path.symlink_metadata().is_ok());
    if !there.is_some_and(|there| is_inside(base, there)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the base"));
    }
    fs::create_dir_all(directory)
}

/// Whether a path, all links followed, is the base or below it.
pub fn is_inside(base: &Path, path: &Path) -> bool {
    match (base.canonicalize(), path.canonicalize()) {
        (Ok(base), Ok(path)) => path.starts_with(base),
        _ => false,
    }
}

/// Bytes of a file here that are read at most; an outcome holds a Fabric result.
const READ_BYTES: u64 = 64 * 1024 * 1024;

/// Opens a file that must be a regular one: a link would lead elsewhere, a FIFO would block.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
    }
    Ok(file)
}

/// Reads a regular file that has a sensible length; what is longer is an error of the kind
/// `FileTooLarge`, never cut.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, READ_BYTES)
}

/// The same with a bound of the caller's.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let sentence = format!("it is longer than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
    }
    Ok(bytes)
}

/// Reads a JSON file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&read_regular(path)?)?)
}

/// Whether it is this process or machine that is short of something, and not the file.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO, Errno::INTR];
    error.raw_os_error().is_some_and(|code| passing.iter().any(|one| one.raw_os_error() == code))
}

/// Files that this process has begun to write beside their targets.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Writes a JSON file so that a reader sees either nothing or all of it.
pub fn write_json<T: Serialize>(path: &Path, value: &T, mode: u32) -> io::Result<()> {
    write_atomically(path, &serde_json::to_vec(value)?, mode)
}

/// Writes beside the target, syncs, renames over it, and syncs the directory. Several may do so at
/// once.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    let nth = WRITTEN.fetch_add(1, Ordering::Relaxed);
    partial.push(format!(".{}.{nth}", std::process::id()));
    let partial = parent.join(partial);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().inspect_err(|_| {
        // Half a file is of no use; where it cannot be removed either, it stays beside.
        let _ = fs::remove_file(&partial);
    })?;
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests;
