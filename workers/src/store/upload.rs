//! An object of unknown length: one PUT when it is small, else a multipart upload whose parts
//! go out one after the other, so that memory stays flat. It is verified before it counts.
//!
//! A part is sent again from memory, the whole never: whoever has the data begins anew with it.

use std::mem;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumType, CompletedMultipartUpload, CompletedPart};
use backon::Retryable;
use bytes::Bytes;
use streams::snapshot::ObjectRef;

use super::vouch::{Summing, Sums, crc32, encode};
use super::{AGAIN, Error, Store, failed};

/// Bytes of the first parts. S3 takes 10,000 parts, so they grow with the object.
pub const PART_BYTES: usize = 5 * 1024 * 1024;

/// So many parts of one size, then the size doubles: 1,000 × 5 MiB, 1,000 × 10 MiB, …
const PARTS_PER_SIZE: i32 = 1_000;

/// An upload in progress. One that is dropped before it is finished is given up behind the
/// scenes; [`Upload::abort`] waits for that. What a process that dies leaves, the sweeper finds.
pub struct Upload {
    store: Store,
    key: String,
    buffer: Vec<u8>,
    summing: Summing,
    multipart: Option<String>,
    /// Of what the store makes its checksum; of the parts' own unless it is told otherwise.
    checksum: Option<ChecksumType>,
    parts: Vec<CompletedPart>,
    crcs: Vec<u32>,
}

impl Upload {
    pub(super) fn new(store: Store, key: String) -> Self {
        Self {
            store,
            key,
            buffer: Vec::new(),
            summing: Summing::default(),
            multipart: None,
            checksum: None,
            parts: Vec::new(),
            crcs: Vec::new(),
        }
    }

    /// The same, and the store's checksum is of that.
    pub(super) fn summed(mut self, checksum: ChecksumType) -> Self {
        self.checksum = Some(checksum);
        self
    }

    /// Appends bytes; sends a part when one is full.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.summing.update(bytes);
        while !bytes.is_empty() {
            // Never beyond the part, so that the buffer does not grow to twice of it.
            let room = self.part_bytes() - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == self.part_bytes() {
                let part = mem::take(&mut self.buffer);
                self.send_part(part.into()).await?;
            }
        }
        Ok(())
    }

    /// Sends what is left, makes sure of the whole, and says what stands there now.
    pub async fn finish(self) -> Result<ObjectRef, Error> {
        let key = self.key.clone();
        Ok(self.finish_summed().await?.object(&key))
    }

    /// The same for those who need more of its sums.
    pub async fn finish_summed(mut self) -> Result<Sums, Error> {
        let rest = Bytes::from(mem::take(&mut self.buffer));
        if self.multipart.is_none() {
            return self.store.put_summed(&self.key, rest).await;
        }
        if !rest.is_empty() {
            self.send_part(rest).await?;
        }
        let parts = mem::take(&mut self.parts);
        let completed = self.ask_to_complete(parts).await;
        let sums = mem::take(&mut self.summing).finish(&self.crcs);
        self.store.settle(&self.key, &sums, completed).await?;
        self.multipart = None;
        Ok(sums)
    }

    /// Gives the upload up and tells the store.
    pub async fn abort(mut self) {
        if let Some(id) = self.multipart.take() {
            give_up(&self.store, &self.key, &id).await;
        }
    }

    fn part_bytes(&self) -> usize {
        let doublings = i32::try_from(self.parts.len()).unwrap_or(i32::MAX) / PARTS_PER_SIZE;
        PART_BYTES << doublings
    }

    async fn send_part(&mut self, bytes: Bytes) -> Result<(), Error> {
        let id = match &self.multipart {
            Some(id) => id.clone(),
            None => self.begin().await?,
        };
        let number = i32::try_from(self.parts.len() + 1).unwrap_or(i32::MAX);
        let crc = crc32(&bytes);
        let Store { client, bucket, .. } = &self.store;
        let key = &self.key;
        let send = || async {
            let part = client.upload_part().bucket(bucket).key(key).upload_id(&id);
            let part = part.part_number(number).checksum_crc32(encode(crc));
            let sent = part.body(ByteStream::from(bytes.clone())).send().await;
            let sent = sent.map_err(|error| failed("upload a part of", key, &error))?;
            if sent.checksum_crc32().is_some_and(|stored| stored != encode(crc)) {
                return Err(Error::new("upload a part of", key, "its checksum is another there"));
            }
            Ok(sent)
        };
        let sent = send.retry(AGAIN).when(|error: &Error| error.answered).await?;
        let part = CompletedPart::builder()
            .part_number(number)
            .set_e_tag(sent.e_tag)
            .set_checksum_crc32(sent.checksum_crc32);
        self.parts.push(part.build());
        self.crcs.push(crc);
        Ok(())
    }

    /// Begins an upload of several parts; answers its id.
    pub(super) async fn begin(&mut self) -> Result<String, Error> {
        let Store { client, bucket, .. } = &self.store;
        let begin = || async {
            let begun = client.create_multipart_upload().bucket(bucket).key(&self.key);
            // Stores that check sums want the algorithm named before the first part.
            let begun = begun.checksum_algorithm(ChecksumAlgorithm::Crc32);
            let begun = begun.set_checksum_type(self.checksum.clone());
            let begun = begun.send().await.map_err(|error| failed("begin", &self.key, &error))?;
            begun.upload_id.ok_or_else(|| Error::new("begin", &self.key, "no upload id"))
        };
        let id = begin.retry(AGAIN).when(|error: &Error| error.answered).await?;
        self.multipart = Some(id.clone());
        Ok(id)
    }

    /// Puts together what somebody else has sent or copied as parts of it. Nobody has looked at the
    /// whole then.
    pub(super) async fn complete(mut self, parts: Vec<CompletedPart>) -> Result<(), Error> {
        self.ask_to_complete(parts).await?;
        self.multipart = None;
        Ok(())
    }

    async fn ask_to_complete(&self, parts: Vec<CompletedPart>) -> Result<(), Error> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let Store { client, bucket, .. } = &self.store;
        let complete = client.complete_multipart_upload().bucket(bucket).key(&self.key);
        let complete = complete.set_upload_id(self.multipart.clone()).multipart_upload(parts);
        let complete = complete.set_checksum_type(self.checksum.clone());
        complete.send().await.map(drop).map_err(|error| failed("complete", &self.key, &error))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(id) = self.multipart.take() else { return };
        let (store, key) = (self.store.clone(), mem::take(&mut self.key));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { give_up(&store, &key, &id).await });
        }
    }
}

async fn give_up(store: &Store, key: &str, id: &str) {
    if let Err(error) = store.abort(key, id).await {
        tracing::warn!(object.key = key, %error, "could not give up an upload");
    }
}
