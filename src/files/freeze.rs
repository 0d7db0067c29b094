//! Freezing: a fileset's present listing as one object, which a job pins.

use streams::snapshot::ObjectRef;

use super::{Error, Files, incoming};
use crate::records::Fileset;

/// So often a listing is read again because files changed meanwhile.
const TRIES: u32 = 16;

impl Files {
    /// The listing of a fileset's files, sorted by path, as JSON lines of `FileEntry`. An
    /// unchanged fileset is not listed again.
    pub async fn freeze(&self, fileset: &Fileset) -> Result<ObjectRef, Error> {
        let filesets = self.records.filesets();
        let mut fileset = fileset.clone();
        for _ in 0..TRIES {
            if let (Some(pinned), true) =
                (&fileset.pinned, fileset.pinned_version == Some(fileset.version))
            {
                return Ok(pinned.clone());
            }
            let mut listing = Vec::new();
            for entry in filesets.files(&fileset.id, "").await? {
                // Strings and numbers: there is no entry that serde could not write.
                serde_json::to_writer(&mut listing, &entry).map_err(|error| {
                    crate::records::Error::Corrupt {
                        what: entry.path.clone(),
                        reason: error.to_string(),
                    }
                })?;
                listing.push(b'\n');
            }
            // Only a listing that no write overlapped belongs to a version.
            let now = filesets.get(&fileset.workspace, &fileset.name).await?;
            if now.version == fileset.version && now.id == fileset.id {
                let bytes =
                    futures_util::stream::iter([Ok::<_, std::convert::Infallible>(listing.into())]);
                let received = incoming::receive(&self.store, "listing", bytes).await?;
                let pinned = received.blob();
                filesets.set_pinned(&fileset.id, fileset.version, &pinned).await?;
                received.keep(&self.store).await?;
                return Ok(pinned);
            }
            fileset = now;
        }
        Err(Error::Records(crate::records::Error::Busy(format!(
            "fileset '{}/{}' keeps changing",
            fileset.workspace, fileset.name
        ))))
    }
}
