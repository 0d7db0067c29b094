//! Rotation: a new key seals what older ones have sealed, beside a running platform.
//!
//! The key file is the memory. It has the new key above the old one from before the first secret
//! is sealed anew until after the last, so whatever dies in between loses nothing, and the next
//! rotation goes on where that one was left. A running platform reads the file again whenever it
//! has changed.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use workers::fault;

use super::key_file::{self, KeyFileError};
use super::keyring::Keys;
use super::seal::{SealError, Sealer};
use super::store::{PAGE, SecretStoreError, owner};
use crate::records::{Records, SecretRow};

/// What is to be done.
#[derive(Debug, Default)]
pub struct Rotation {
    /// The key to come; made when absent, unless an earlier rotation is to be finished.
    pub new_key: Option<Sealer>,
    /// A key that the file lacks and secrets may need.
    pub old_key: Option<Sealer>,
    /// Whether the old keys stay in the file when no secret needs them any more.
    pub keep_old: bool,
}

/// What was done.
#[derive(Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The id of the key that seals from now on.
    pub key: String,
    /// Secrets that were sealed anew.
    pub secrets: u64,
    /// Whether an earlier rotation was gone on with.
    pub resumed: bool,
    /// Old keys that are still in the file.
    pub old_keys: usize,
}

/// Why a rotation stopped. What is sealed anew stays so.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The key file.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// Another one is at it.
    #[error("another rotation of {} is under way; wait for it", .0.display())]
    Busy(PathBuf),
    /// A secret.
    #[error("{0}; nothing is lost, rotate again when that is mended")]
    Secret(#[from] SecretStoreError),
}

impl Rotation {
    /// Does it. Two at once on one machine are kept apart.
    pub async fn run(self, records: &Records, path: &Path) -> Result<Rotated, RotationError> {
        let _lock = lock(path)?;
        let before = key_file::load(path)?;
        let (keys, resumed) = self.keys(&before);
        if keys.0.len() != before.len() || keys.present() != before[0].header() {
            key_file::replace(path, &keys.0)?;
        }
        let mut secrets = reseal_all(records, &keys).await?;
        let mut old_keys = keys.0.len() - 1;
        if !self.keep_old && old_keys > 0 {
            // A platform that had read the file before may have kept a secret meanwhile. The old
            // keys leave the disk last: whatever stops this pass may need them again.
            secrets += reseal_all(records, &keys).await?;
            key_file::replace(path, &keys.0[..1])?;
            old_keys = 0;
        }
        Ok(Rotated { key: keys.0[0].id(), secrets, resumed, old_keys })
    }

    /// The keys while it lasts, and whether it was begun before.
    fn keys(&self, before: &[Sealer]) -> (Keys, bool) {
        let is_present = |key: &Sealer| key.header() == before[0].header();
        let begun = match &self.new_key {
            Some(key) => is_present(key),
            None => before.len() > 1,
        };
        let first = (!begun).then(|| self.new_key.clone().unwrap_or_else(Sealer::generate));
        let mut keys: Vec<Sealer> = Vec::new();
        for key in first.iter().chain(before).chain(&self.old_key) {
            if keys.iter().all(|known| known.header() != key.header()) {
                keys.push(key.clone());
            }
        }
        (Keys(keys), begun)
    }
}

/// Seals everything with the present key that another one has sealed; how much that was.
async fn reseal_all(records: &Records, keys: &Keys) -> Result<u64, SecretStoreError> {
    let (mut after, mut count) = (String::new(), 0);
    loop {
        let rows = records.secrets().sealed_otherwise(&[keys.present()], &after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(count) };
        after.clone_from(&last.id);
        for row in &rows {
            count += u64::from(reseal(records, keys, row).await?);
            fault::hold("secrets:resealed").await;
        }
    }
}

/// Seals one anew, unless it was changed or removed meanwhile.
pub(super) async fn reseal(
    records: &Records,
    keys: &Keys,
    row: &SecretRow,
) -> Result<bool, SecretStoreError> {
    let owner = owner(&row.workspace, &row.name);
    let sealed = keys.open(&owner, &row.sealed).and_then(|plain| keys.seal(&owner, &plain));
    let sealed =
        sealed.map_err(|source: SealError| SecretStoreError::Seal { secret: owner, source })?;
    Ok(records.secrets().reseal(&row.id, &row.sealed, &sealed).await?)
}

/// The lock of the directory that the file is in: the file itself is replaced.
fn lock(path: &Path) -> Result<File, RotationError> {
    let io = |source| KeyFileError::Io { path: path.to_owned(), source };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(directory.unwrap_or(Path::new("."))).map_err(io)?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(RotationError::Busy(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(io(source).into()),
    }
}
