//! Reading objects. Of a whole object the last bytes are given out only when all of them have the
//! digest that was noted when it was written: whoever has read to its end has read the right
//! bytes, and whoever passes them on breaks off rather than ending wrongly.
//!
//! A connection that breaks is taken up where it broke. Bytes that are wrong are the reader's to
//! ask for again: what it made of them must be made anew.

use std::io;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::ChecksumMode;
use backon::Retryable;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use streams::snapshot::ObjectRef;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::{AGAIN, Error, Store, code, failed};

/// So often a broken connection is taken up again in one reading, after a pause.
const RESUMES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes on their way from the store.
pub type Body = BoxStream<'static, io::Result<Bytes>>;

/// An object that is open for reading.
pub struct Object {
    /// Bytes in `body`: the whole object, or the range asked for.
    pub size: u64,
    /// The bytes.
    pub body: Body,
}

impl Object {
    /// As a reader, for a thread that may block. Made where the runtime is.
    pub fn into_read(self) -> impl io::Read + Send + 'static {
        SyncIoBridge::new(StreamReader::new(self.body))
    }
}

/// Reads what is left of an object, which somebody who unpacks it need not have done. Where it
/// fails the object did not arrive as it was stored, and what was made of it counts for nothing.
pub fn drain(mut rest: impl io::Read) -> io::Result<()> {
    io::copy(&mut rest, &mut io::sink()).map(drop)
}

impl Store {
    /// Opens a whole object; `None` when there is none.
    pub async fn fetch(&self, object: &ObjectRef) -> Result<Option<Object>, Error> {
        self.fetch_range(object, None).await
    }

    /// Opens part of an object; both ends of the range are included. The digest is the whole
    /// object's, so a part is only as right as the store and the connection are.
    pub async fn fetch_range(
        &self,
        object: &ObjectRef,
        range: Option<(u64, u64)>,
    ) -> Result<Option<Object>, Error> {
        let (at, end) = match range {
            Some((from, to)) => (from, to.saturating_add(1).min(object.size)),
            None => (0, object.size),
        };
        let Some(body) = self.open_at(object, at, end).await? else { return Ok(None) };
        let reading = Reading {
            store: self.clone(),
            object: object.clone(),
            body,
            at,
            end,
            hash: (end - at == object.size).then(Sha256::new),
            held: Bytes::new(),
            resumes: RESUMES,
        };
        let body = stream::try_unfold(reading, |mut reading| async move {
            Ok(reading.next().await?.map(|chunk| (chunk, reading)))
        });
        Ok(Some(Object { size: end - at, body: body.boxed() }))
    }

    /// Reads a small object whole.
    pub async fn read(&self, object: &ObjectRef) -> Result<Option<Bytes>, Error> {
        let read = || async {
            let Some(opened) = self.fetch(object).await? else { return Ok(None) };
            let read: Result<Vec<Bytes>, _> = opened.body.try_collect().await;
            let read = read.map_err(|error| Error::new("get", &object.key, error))?;
            Ok(Some(read.concat().into()))
        };
        read.retry(AGAIN).when(|error: &Error| error.answered).await
    }

    /// Reads a small object of which only the key is known. Where the store keeps a checksum the
    /// bytes have it; the format must tell by itself that it is whole.
    pub async fn read_unknown(&self, key: &str) -> Result<Option<Bytes>, Error> {
        self.read_by_key(key, None).await
    }

    /// The same for a small part of an object: its first byte, and the one after its last.
    pub async fn read_part(&self, key: &str, at: u64, end: u64) -> Result<Option<Bytes>, Error> {
        self.read_by_key(key, Some(format!("bytes={at}-{}", end.saturating_sub(1)))).await
    }

    async fn read_by_key(&self, key: &str, range: Option<String>) -> Result<Option<Bytes>, Error> {
        let read = || async {
            let get = self.client.get_object().bucket(&self.bucket).key(key);
            // Of a part some stores answer with the checksum of the whole.
            let mode = range.is_none().then_some(ChecksumMode::Enabled);
            let get = get.set_range(range.clone()).set_checksum_mode(mode);
            let opened = match get.send().await {
                Ok(opened) => opened,
                Err(error) if code(&error) == Some("NoSuchKey") => return Ok(None),
                Err(error) => return Err(failed("get", key, &error)),
            };
            let read = opened.body.collect().await;
            Ok(Some(read.map_err(|error| Error::new("get", key, error))?.into_bytes()))
        };
        read.retry(AGAIN).when(|error: &Error| error.answered).await
    }

    async fn open_at(
        &self,
        object: &ObjectRef,
        at: u64,
        end: u64,
    ) -> Result<Option<ByteStream>, Error> {
        let key = &object.key;
        let whole = end - at == object.size;
        // There is no range of nothing; the whole of an empty object can be asked for.
        let range = (!whole).then(|| format!("bytes={at}-{}", end.saturating_sub(1)));
        let get = self.client.get_object().bucket(&self.bucket).key(key).set_range(range);
        match get.send().await {
            Ok(found) => {
                let size = found.content_length().and_then(|size| u64::try_from(size).ok());
                if size != Some(end - at) {
                    let size = size.unwrap_or_default();
                    let reason = format!("it has {size} bytes there, {} were stored", end - at);
                    return Err(Error::new("get", key, reason));
                }
                Ok(Some(found.body))
            }
            Err(error) if code(&error) == Some("NoSuchKey") => Ok(None),
            Err(error) => Err(failed("get", key, &error)),
        }
    }
}

/// How far a reading is.
struct Reading {
    store: Store,
    object: ObjectRef,
    body: ByteStream,
    at: u64,
    end: u64,
    /// Of a whole object only.
    hash: Option<Sha256>,
    /// What came last waits here until it is known to be no wrong end.
    held: Bytes,
    resumes: u32,
}

impl Reading {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while let Some(chunk) = self.receive().await? {
            let ready = std::mem::replace(&mut self.held, chunk);
            if !ready.is_empty() {
                return Ok(Some(ready));
            }
        }
        if let Some(hash) = self.hash.take() {
            let found = hex::encode(hash.finalize());
            if found != self.object.sha256 {
                let stored = &self.object.sha256;
                return Err(self.wrong(format!("its sha256 is {found}, {stored} was stored")));
            }
        }
        let last = std::mem::take(&mut self.held);
        Ok((!last.is_empty()).then_some(last))
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        while self.at < self.end {
            let broken = match self.body.next().await {
                Some(Ok(chunk)) if chunk.len() as u64 <= self.end - self.at => {
                    self.at += chunk.len() as u64;
                    if let Some(hash) = &mut self.hash {
                        hash.update(&chunk);
                    }
                    return Ok(Some(chunk));
                }
                Some(Ok(_)) => return Err(self.wrong("it has more bytes than were stored")),
                Some(Err(error)) => error.to_string(),
                None => "it ends early".to_owned(),
            };
            self.resume(broken).await?;
        }
        Ok(None)
    }

    async fn resume(&mut self, mut broken: String) -> io::Result<()> {
        while self.resumes > 0 {
            self.resumes -= 1;
            tokio::time::sleep(PAUSE * (RESUMES - self.resumes)).await;
            match self.store.open_at(&self.object, self.at, self.end).await {
                Ok(Some(body)) => {
                    self.body = body;
                    return Ok(());
                }
                Ok(None) => return Err(self.wrong("it is gone")),
                Err(error) => broken = error.to_string(),
            }
        }
        Err(self.wrong(broken))
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> io::Error {
        io::Error::other(Error::new("get", &self.object.key, reason))
    }
}
