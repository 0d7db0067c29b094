//! Receives bytes of unknown length and digest: small ones in memory, larger ones under a key
//! of their own until the digest is known. Either way they end as one blob.

use std::fmt::Display;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use workers::store::{Store, Sums, Upload, key};

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
    let sums = match fill(&mut upload, small, rest).await {
        Ok(()) => upload.finish_summed().await?,
        Err(error) => {
            upload.abort().await;
            return Err(error);
        }
    };
    let blob = sums.object(&key::blob(sums.sha256()));
    if !store.holds(&blob.key, &sums).await? {
        store.copy(&waiting, &blob.key, &sums).await?;
    }
    store.delete(&waiting).await?;
    Ok((blob.sha256, blob.size))
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
    let sums = Sums::of(&bytes);
    let blob = sums.object(&key::blob(sums.sha256()));
    if !store.holds(&blob.key, &sums).await? {
        store.put(&blob.key, bytes.into()).await?;
    }
    Ok((blob.sha256, blob.size))
}
