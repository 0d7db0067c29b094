//! The data directory, held by one platform at a time.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A data directory that is ours until this is dropped or the process ends, however it ends.
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why the directory is not ours.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be made, read or written.
    #[error("data directory {}: {action}: {reason}", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's words.
        reason: std::io::Error,
    },
    /// Another platform holds it.
    #[error(
        "data directory {} is in use by the platform with pid {pid}; stop that one, or choose \
         another directory with --data-dir",
        path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who holds it, as it wrote itself.
        pid: String,
    },
}

impl DataDir {
    /// Makes the directory if need be and takes it.
    pub fn lock(path: &Path) -> Result<Self, Error> {
        let unusable =
            |action| move |reason| Error::Unusable { path: path.to_owned(), action, reason };
        private_dir(path).map_err(unusable("cannot be made"))?;
        let path = path.canonicalize().map_err(unusable("cannot be resolved"))?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(unusable("its lock file cannot be opened"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(Error::InUse { path, pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(reason)) => return Err(unusable("cannot be locked")(reason)),
        }
        // A full disk shows here, before anything was started.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .and_then(|()| file.sync_data())
            .map_err(unusable("cannot be written"))?;
        Ok(Self { path, _lock: file })
    }

    /// Where it is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it, made if need be.
    pub fn join(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        match private_dir(&path) {
            Ok(()) => Ok(path),
            Err(reason) => Err(Error::Unusable { path, action: "cannot be made", reason }),
        }
    }
}

/// Makes a directory that only its owner may enter: tokens and sealed secrets lie in it.
fn private_dir(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
