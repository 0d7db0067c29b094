//! Receives bytes of unknown length and digest: small ones in memory, larger ones under a key
//! of their own until the digest is known. Either way they end as one blob.

use std::fmt::Display;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use workers::store::{Store, Upload, key};

use super::Error;

/// Up to so many bytes are held in memory.
const SMALL_BYTES: usize = 1024 * 1024;

/// Stores the bytes as a blob. Answers their digest and how many they are.
pub(super) async fn receive<E: Display>(
    store: &Store,
    path: &str,
    mut bytes: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
) -> Result<(String, u64), Error> {
    let broken = |error: E| Error::BrokenOff { path: path.to_owned(), reason: error.to_string() };
    let mut small = Vec::new();
    while small.len() <= SMALL_BYTES {
        match bytes.next().await {
            Some(chunk) => small.extend_from_slice(&chunk.map_err(broken)?),
            None => return receive_small(store, small).await,
        }
    }
    let waiting = key::incoming(uuid::Uuid::now_v7());
    let mut upload = store.upload(&waiting);
    let rest = bytes.map(|chunk| chunk.map_err(broken));
    let object = match fill(&mut upload, small, rest).await {
        Ok(()) => upload.finish().await?,
        Err(error) => {
            upload.abort().await;
            return Err(error);
        }
    };
    let blob = key::blob(&object.sha256);
    if store.size(&blob).await? != Some(object.size) {
        store.copy(&waiting, &blob).await?;
    }
    store.delete(&waiting).await?;
    Ok((object.sha256, object.size))
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

async fn receive_small(store: &Store, bytes: Vec<u8>) -> Result<(String, u64), Error> {
    let sha256 = hex::encode(Sha256::digest(&bytes));
    let size = bytes.len() as u64;
    let blob = key::blob(&sha256);
    if store.size(&blob).await? != Some(size) {
        store.put(&blob, bytes.into()).await?;
    }
    Ok((sha256, size))
}
