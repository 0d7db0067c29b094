//! Files of filesets: their bytes by content in the object store, their names in the records.
//!
//! A file's bytes are stored once, under their digest; a fileset freezes into a listing that is
//! stored the same way, so that a job can pin it by one key. Nothing here knows HTTP.

mod exported;
mod freeze;
mod incoming;
pub(crate) mod path;

use std::fmt::Display;

use bytes::Bytes;
use futures_util::Stream;
use streams::snapshot::{FileEntry, ObjectRef};
use workers::store::{self, Store};

use crate::records::{self, Fileset, Records};

/// The files of all filesets.
#[derive(Clone)]
pub struct Files {
    records: Records,
    store: Store,
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is a directory, or lies below a file.
    #[error("path '{0}' cannot be a file: it is a directory already, or lies below a file")]
    InTheWay(String),
    /// The sender broke off.
    #[error("upload of '{path}' broke off: {reason}")]
    BrokenOff {
        /// The file.
        path: String,
        /// What the connection says.
        reason: String,
    },
    /// The records did not answer.
    #[error(transparent)]
    Records(#[from] records::Error),
    /// The object store did not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Files {
    /// Files over these records and this store.
    pub fn new(records: Records, store: Store) -> Self {
        Self { records, store }
    }

    /// Writes a file, over an older one of its path. `path` is normalised.
    pub async fn put<E: Display>(
        &self,
        fileset: &Fileset,
        path: String,
        mode: u32,
        bytes: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
    ) -> Result<FileEntry, Error> {
        let received = incoming::receive(&self.store, &path, bytes).await?;
        let ObjectRef { size, sha256, .. } = received.blob();
        match self.name(fileset, FileEntry { path, mode, size, sha256 }).await {
            Ok(entry) => {
                received.keep(&self.store).await?;
                Ok(entry)
            }
            Err(error) => {
                received.discard(&self.store).await?;
                Err(error)
            }
        }
    }

    /// Whether an object is stored.
    pub(crate) async fn has(&self, object: &ObjectRef) -> Result<bool, Error> {
        Ok(self.store.size(&object.key).await? == Some(object.size))
    }

    /// Gives a path to bytes that are stored.
    async fn name(&self, fileset: &Fileset, entry: FileEntry) -> Result<FileEntry, Error> {
        match self.records.filesets().put_file(&fileset.id, entry.clone()).await {
            Ok(()) => Ok(entry),
            Err(records::Error::Conflict) => Err(Error::InTheWay(entry.path)),
            Err(error) => Err(error.into()),
        }
    }
}
