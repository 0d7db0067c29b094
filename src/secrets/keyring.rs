//! The keys of a running platform: those of the key file, read again when the file has changed.
//!
//! So a rotation needs no restart. A file that has become unreadable takes no key away.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::key_file::{self, KeyFileError};
use super::seal::{HEADER_BYTES, SealError, Sealer};

/// The keys as the file has them now.
#[derive(Debug)]
pub struct Keyring {
    path: PathBuf,
    known: Mutex<(Stamp, Arc<Keys>)>,
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
        Ok(Self { path: path.to_owned(), known: Mutex::new((stamp, keys)) })
    }

    pub(super) fn keys(&self) -> Arc<Keys> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp != known.0 {
            known.0 = stamp;
            match key_file::load(&self.path) {
                Ok(keys) => known.1 = Arc::new(Keys(keys)),
                Err(error) => tracing::warn!(%error, "the keys that were read before stay in use"),
            }
        }
        known.1.clone()
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
