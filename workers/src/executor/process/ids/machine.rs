//! What the platforms of a machine know of each other's numbers: for each one that was given out
//! there is a link, in a place that all of them know, to the file that takes it.
//!
//! Such a file may be gone, and its platform with it; what stands at its path then is somebody's,
//! and takes nothing. A boot forgets the links: a platform that starts makes those of the numbers
//! that it still has, but for those that another has given out meanwhile.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use errand_runner::run_dir::open_regular;
use rustix::process::geteuid;

use super::{lock, remove};

/// Where the links are.
pub(in super::super) const PLACE: &str = "/run/errand/agent-ids";

/// The links of a machine.
#[derive(Clone)]
pub(super) struct Machine {
    place: PathBuf,
}

impl Machine {
    pub(super) fn new(place: &Path) -> Self {
        Self { place: place.to_owned() }
    }

    /// Keeps other platforms from giving out numbers; nothing where there can be no such place.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let error = match lock(&self.place) {
            Ok(lock) => return Ok(Some(lock)),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                let place = self.place.display();
                tracing::warn!(%place, %error, "another platform here may have the same users");
                Ok(None)
            }
            _ => Err(error),
        }
    }

    /// Whether another file than this one takes the number.
    pub(super) fn is_taken(&self, id: u32, file: &Path) -> bool {
        let target = fs::read_link(self.link(id)).ok().filter(|target| target != file);
        let Some(target) = target else { return false };
        match open_regular(&target).and_then(|file| file.metadata()) {
            Ok(theirs) => theirs.len() > 0 && theirs.uid() == geteuid().as_raw(),
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidData
            ),
        }
    }

    /// Notes that this file takes the number, under the lock.
    pub(super) fn note(&self, id: u32, file: &Path) -> io::Result<()> {
        let link = self.link(id);
        if fs::read_link(&link).is_ok_and(|target| target == file) {
            return Ok(());
        }
        remove(&link)?;
        symlink(file, &link)
    }

    fn link(&self, id: u32) -> PathBuf {
        self.place.join(id.to_string())
    }
}
