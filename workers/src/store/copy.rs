//! Copies within the bucket. S3 copies 5 GiB in one request; what is larger it copies in parts of
//! an upload (Amazon S3 API reference, `CopyObject` and `UploadPartCopy`). Other stores copy any
//! object in one request, and not all of them copy parts: so parts are the second thing that is tried.

use aws_sdk_s3::Config;
use aws_sdk_s3::config::StalledStreamProtectionConfig;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::types::{ChecksumType, CompletedPart};
use backon::Retryable;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::upload::Upload;
use super::vouch::Sums;
use super::{AGAIN, Error, Store, failed};

/// What every store copies in one request.
const WHOLE_BYTES: u64 = 5 << 30;

/// Bytes of each part of what is larger: 10,000 of them, the most there may be, are 4.9 TiB.
const PART_BYTES: u64 = 512 << 20;

/// Parts that the store copies at a time.
const AT_ONCE: usize = 4;

impl Store {
    /// Copies an object whose bytes are known within the bucket.
    pub async fn copy(&self, from: &str, to: &str, sums: &Sums) -> Result<(), Error> {
        let copied = self.ask_to_copy(from, to, sums.size()).await;
        self.settle(to, sums, copied).await
    }

    /// Copies an object of which only the key is known; false when there is none. Of the copy it is
    /// looked only whether it is as long: whoever reads it knows its digest.
    pub async fn duplicate(&self, from: &str, to: &str) -> Result<bool, Error> {
        let Some(size) = self.size(from).await? else { return Ok(false) };
        self.ask_to_copy(from, to, size).await?;
        if self.size(to).await? == Some(size) {
            return Ok(true);
        }
        Err(Error::new("verify", to, format!("it has not the {size} bytes of '{from}'")))
    }

    async fn ask_to_copy(&self, from: &str, to: &str, size: u64) -> Result<(), Error> {
        let copy = self.client.copy_object().bucket(&self.bucket).copy_source(self.source(from));
        match copy.key(to).send().await {
            Ok(_) => Ok(()),
            Err(SdkError::ServiceError(_)) if size > WHOLE_BYTES => {
                self.copy_in_parts(from, to, size, PART_BYTES).await
            }
            Err(error) => Err(failed("copy to", to, &error)),
        }
    }

    /// Copies an object of `size` bytes in parts of so many bytes. Nobody has looked at the copy
    /// then.
    pub async fn copy_in_parts(
        &self,
        from: &str,
        to: &str,
        size: u64,
        part_bytes: u64,
    ) -> Result<(), Error> {
        // Of the whole, so that it can be told from the parts' without being read.
        let mut upload = Upload::new(self.clone(), to.to_owned()).summed(ChecksumType::FullObject);
        let id = upload.begin().await?;
        let step = usize::try_from(part_bytes).unwrap_or(usize::MAX);
        let parts = (0..size).step_by(step).map(|start| (start, size.min(start + part_bytes)));
        let parts = stream::iter((1..).zip(parts))
            .map(|(number, part)| self.copy_part(from, to, &id, number, part))
            .buffered(AT_ONCE);
        upload.complete(parts.try_collect().await?).await
    }

    /// The bytes from the first number to before the second.
    async fn copy_part(
        &self,
        from: &str,
        to: &str,
        id: &str,
        number: i32,
        (start, end): (u64, u64),
    ) -> Result<CompletedPart, Error> {
        let copy = || async {
            let copy = self.client.upload_part_copy().bucket(&self.bucket).key(to).upload_id(id);
            let copy = copy.copy_source(self.source(from)).part_number(number);
            let copy = copy.copy_source_range(format!("bytes={start}-{}", end - 1)).customize();
            // The store says nothing while it copies.
            let patient = StalledStreamProtectionConfig::disabled();
            let patient = Config::builder().stalled_stream_protection(patient);
            let copied = copy.config_override(patient).send().await;
            let copied = copied.map_err(|error| failed("copy a part to", to, &error))?;
            copied.copy_part_result.ok_or_else(|| Error::new("copy a part to", to, "no result"))
        };
        let copied = copy.retry(AGAIN).when(|error: &Error| error.answered).await?;
        let part = CompletedPart::builder().part_number(number).set_e_tag(copied.e_tag);
        Ok(part.set_checksum_crc32(copied.checksum_crc32).build())
    }

    fn source(&self, key: &str) -> String {
        format!("{}/{key}", self.bucket)
    }
}
