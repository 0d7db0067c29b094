//! An object of unknown length: one PUT when it is small, else a multipart upload whose parts
//! go out one after the other, so that memory stays flat. It is verified before it counts.

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use streams::snapshot::ObjectRef;

use super::{Error, failed};

/// Bytes of the first parts. S3 takes 10,000 parts, so they grow with the object.
pub const PART_BYTES: usize = 8 * 1024 * 1024;

/// So many parts of one size, then the size doubles: 1,000 × 8 MiB, 1,000 × 16 MiB, …
const PARTS_PER_SIZE: i32 = 1_000;

/// An upload in progress. Dropping it without [`Upload::finish`] leaves at most an unfinished
/// multipart upload; call [`Upload::abort`] to leave nothing.
pub struct Upload {
    client: Client,
    bucket: String,
    key: String,
    buffer: Vec<u8>,
    hash: Sha256,
    size: u64,
    multipart: Option<String>,
    parts: Vec<CompletedPart>,
}

impl Upload {
    pub(super) fn new(client: Client, bucket: String, key: String) -> Self {
        Self {
            client,
            bucket,
            key,
            buffer: Vec::new(),
            hash: Sha256::new(),
            size: 0,
            multipart: None,
            parts: Vec::new(),
        }
    }

    /// Appends bytes; sends a part when one is full.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() >= self.part_bytes() {
            let rest = self.buffer.split_off(self.part_bytes());
            let part = std::mem::replace(&mut self.buffer, rest);
            self.send_part(part.into()).await?;
        }
        Ok(())
    }

    /// Sends what is left, asks the store for the size, and says what stands there now.
    pub async fn finish(mut self) -> Result<ObjectRef, Error> {
        let rest = Bytes::from(std::mem::take(&mut self.buffer));
        let done = if self.multipart.is_some() {
            self.complete(rest).await
        } else {
            self.put_whole(rest).await
        };
        if let Err(error) = done {
            self.abort().await;
            return Err(error);
        }
        let stored = self.stored_size().await?;
        if stored != self.size {
            let reason = format!("it has {stored} bytes, {} were sent", self.size);
            return Err(Error::new("verify", &self.key, reason));
        }
        let sha256 = hex::encode(self.hash.finalize());
        Ok(ObjectRef { key: self.key, size: self.size, sha256 })
    }

    /// Gives the upload up and tells the store.
    pub async fn abort(self) {
        let Some(id) = self.multipart else { return };
        let abort = self.client.abort_multipart_upload().bucket(&self.bucket).key(&self.key);
        if let Err(error) = abort.upload_id(id).send().await {
            tracing::warn!(object.key = self.key, %error, "could not abort a multipart upload");
        }
    }

    fn part_bytes(&self) -> usize {
        let doublings = i32::try_from(self.parts.len()).unwrap_or(i32::MAX) / PARTS_PER_SIZE;
        PART_BYTES << doublings
    }

    async fn put_whole(&mut self, bytes: Bytes) -> Result<(), Error> {
        let put = self.client.put_object().bucket(&self.bucket).key(&self.key);
        let put = put.checksum_algorithm(ChecksumAlgorithm::Crc32);
        let put = put.body(ByteStream::from(bytes)).send().await;
        put.map(drop).map_err(|error| failed("put", &self.key, &error))
    }

    async fn send_part(&mut self, bytes: Bytes) -> Result<(), Error> {
        let id = match &self.multipart {
            Some(id) => id.clone(),
            None => self.begin().await?,
        };
        let number = i32::try_from(self.parts.len() + 1).unwrap_or(i32::MAX);
        let sent = self
            .client
            .upload_part()
            .bucket(&self.bucket)
            .key(&self.key)
            .upload_id(id)
            .part_number(number)
            .checksum_algorithm(ChecksumAlgorithm::Crc32)
            .body(ByteStream::from(bytes))
            .send()
            .await
            .map_err(|error| failed("upload a part of", &self.key, &error))?;
        let part = CompletedPart::builder()
            .part_number(number)
            .set_e_tag(sent.e_tag)
            .set_checksum_crc32(sent.checksum_crc32);
        self.parts.push(part.build());
        Ok(())
    }

    async fn begin(&mut self) -> Result<String, Error> {
        let begun = self.client.create_multipart_upload().bucket(&self.bucket).key(&self.key);
        // Stores that check sums want the algorithm named before the first part.
        let begun = begun.checksum_algorithm(ChecksumAlgorithm::Crc32);
        let begun = begun.send().await.map_err(|error| failed("begin", &self.key, &error))?;
        let id = begun.upload_id.ok_or_else(|| Error::new("begin", &self.key, "no upload id"))?;
        self.multipart = Some(id.clone());
        Ok(id)
    }

    async fn complete(&mut self, rest: Bytes) -> Result<(), Error> {
        if !rest.is_empty() {
            self.send_part(rest).await?;
        }
        let parts = CompletedMultipartUpload::builder()
            .set_parts(Some(std::mem::take(&mut self.parts)))
            .build();
        let complete = self
            .client
            .complete_multipart_upload()
            .bucket(&self.bucket)
            .key(&self.key)
            .set_upload_id(self.multipart.clone())
            .multipart_upload(parts)
            .send()
            .await;
        complete.map(drop).map_err(|error| failed("complete", &self.key, &error))
    }

    async fn stored_size(&self) -> Result<u64, Error> {
        let head = self.client.head_object().bucket(&self.bucket).key(&self.key).send().await;
        let head = head.map_err(|error| failed("verify", &self.key, &error))?;
        Ok(head.content_length().and_then(|size| u64::try_from(size).ok()).unwrap_or_default())
    }
}
