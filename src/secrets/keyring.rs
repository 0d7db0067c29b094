//! The keys of a running platform: those of the key file, read again when the file has changed.
//!
//! So a rotation needs no restart. A file that has become unreadable takes no key away from what
//! is sealed, but nothing is sealed meanwhile: the key may have been retired.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use super::key_file::{self, KeyFileError};
use super::seal::{HEADER_BYTES, SealError, Sealer};

/// The keys as the file has them now.
#[derive(Debug)]
pub struct Keyring {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// Of the file that the keys are from.
    stamp: Stamp,
    keys: Arc<Keys>,
    /// Why the file that is there now cannot be read.
    unreadable: Option<String>,
}

/// Some keys: the first one seals, each opens what it has sealed.
#[derive(Clone, Debug)]
pub(super) struct Keys(pub(super) Vec<Sealer>);

/// Differs between two files that stood under one name: a changed one is always a new one.
type Stamp = Option<(u64, i64, i64)>;

impl Keyring {
    /// Reads the key file, which is made with a random key when it is missing.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        key_file::ensure(path)?;
        let stamp = stamp(path);
        let keys = Arc::new(Keys(key_file::load(path)?));
        let known = Mutex::new(Known { stamp, keys, unreadable: None });
        Ok(Self { path: path.to_owned(), known })
    }

    /// The keys to open with.
    pub(super) fn keys(&self) -> Arc<Keys> {
        self.look().keys.clone()
    }

    /// The keys to seal with.
    pub(super) fn sealing_keys(&self) -> Result<Arc<Keys>, SealError> {
        let known = self.look();
        match &known.unreadable {
            None => Ok(known.keys.clone()),
            Some(reason) => Err(SealError::Unreadable(reason.clone())),
        }
    }

    fn look(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp == known.stamp {
            known.unreadable = None;
            return known;
        }
        match key_file::load(&self.path) {
            Ok(keys) => *known = Known { stamp, keys: Arc::new(Keys(keys)), unreadable: None },
            Err(error) => {
                let reason = Some(error.to_string());
                if known.unreadable != reason {
                    tracing::warn!(%error, "the keys that were read before only open");
                }
                known.unreadable = reason;
            }
        }
        known
    }
}

impl Keys {
    /// What seals of the present key begin with.
    pub(super) fn present(&self) -> [u8; HEADER_BYTES] {
        self.sealing().header()
    }

    /// What the seals begin with that can be opened.
    pub(super) fn headers(&self) -> Vec<[u8; HEADER_BYTES]> {
        self.0.iter().map(Sealer::header).collect()
    }

    pub(super) fn seal(&self, owner: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        self.sealing().seal(owner, plain)
    }

    pub(super) fn open(&self, owner: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let of = |key: &&Sealer| sealed.starts_with(&key.header());
        match self.0.iter().find(of).unwrap_or(self.sealing()).open(owner, sealed) {
            Err(SealError::OtherKey { needed, .. }) => {
                let present = self.0.iter().map(Sealer::id).collect::<Vec<_>>().join(" and ");
                Err(SealError::OtherKey { needed, present })
            }
            opened => opened,
        }
    }

    fn sealing(&self) -> &Sealer {
        self.0.first().expect("a key file has at least one key")
    }
}

fn stamp(path: &Path) -> Stamp {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}
