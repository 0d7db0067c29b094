//! Receives bytes of unknown length and digest: small ones in memory, larger ones under a key
//! of their own until the digest is known. Either way they end as one blob, and stay there until
//! that has a name.

use std::fmt::Display;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use streams::snapshot::ObjectRef;
use workers::store::{Store, Sums, Upload, key};

use super::Error;

/// Up to so many bytes are held in memory.
const SMALL_BYTES: usize = 1024 * 1024;

/// Bytes that are stored as a blob, which nothing names yet. What they can be stored from again is
/// kept until something does.
pub(super) struct Received {
    sums: Sums,
    spare: Spare,
}

enum Spare {
    Bytes(Bytes),
    Object(String),
}

/// Stores the bytes as a blob.
pub(super) async fn receive<E: Display>(
    store: &Store,
    path: &str,
    mut bytes: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
) -> Result<Received, Error> {
    let broken = |error: E| Error::BrokenOff { path: path.to_owned(), reason: error.to_string() };
    let mut small = Vec::new();
    while small.len() <= SMALL_BYTES {
        match bytes.next().await {
            Some(chunk) => small.extend_from_slice(&chunk.map_err(broken)?),
            None => {
                let (sums, spare) = (Sums::of(&small), Spare::Bytes(small.into()));
                let received = Received { sums, spare };
                received.ensure(store).await?;
                return Ok(received);
            }
        }
    }
    let waiting = key::incoming(uuid::Uuid::now_v7());
    let mut upload = store.upload(&waiting);
    let rest = bytes.map(|chunk| chunk.map_err(broken));
    let sums = match fill(&mut upload, small, rest).await {
        Ok(()) => upload.finish_summed().await?,
        Err(error) => {
            upload.abort().await;
            return Err(error);
        }
    };
    let received = Received { sums, spare: Spare::Object(waiting) };
    received.ensure(store).await?;
    Ok(received)
}

impl Received {
    /// The blob.
    pub(super) fn blob(&self) -> ObjectRef {
        self.sums.object(&key::blob(self.sums.sha256()))
    }

    /// Once something names them: whoever collects blobs may have taken this one away before.
    pub(super) async fn keep(self, store: &Store) -> Result<(), Error> {
        self.ensure(store).await?;
        self.discard(store).await
    }

    /// Nothing is going to name them.
    pub(super) async fn discard(self, store: &Store) -> Result<(), Error> {
        match self.spare {
            Spare::Bytes(_) => Ok(()),
            Spare::Object(waiting) => Ok(store.delete(&waiting).await?),
        }
    }

    async fn ensure(&self, store: &Store) -> Result<(), Error> {
        let blob = self.blob().key;
        if !store.holds(&blob, &self.sums).await? {
            match &self.spare {
                Spare::Bytes(bytes) => drop(store.put(&blob, bytes.clone()).await?),
                Spare::Object(waiting) => store.copy(waiting, &blob, &self.sums).await?,
            }
        }
        Ok(())
    }
}

async fn fill(
    upload: &mut Upload,
    begun: Vec<u8>,
    mut rest: impl Stream<Item = Result<Bytes, Error>> + Send + Unpin,
) -> Result<(), Error> {
    upload.write(&begun).await?;
    drop(begun);
    while let Some(chunk) = rest.next().await {
        upload.write(&chunk?).await?;
    }
    Ok(())
}
