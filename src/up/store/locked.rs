//! s3s-fs with its two faults mended.
//!
//! It checks `If-None-Match` and renames afterwards, so that several writers win: here each
//! write to a key waits for the one before. And it answers `BadDigest` after it has put the
//! object in place: here such an object is removed again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use s3s::dto::*;
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result};
use s3s_fs::FileSystem;
use tokio::sync::OwnedMutexGuard;

/// Locks of keys that nobody uses are dropped when there are so many.
const KEPT_LOCKS: usize = 1024;

type Gate = Arc<tokio::sync::Mutex<()>>;

/// The file system, with one writer at a time for each key.
pub(super) struct Locked {
    files: FileSystem,
    gates: Mutex<HashMap<(String, String), Gate>>,
}

impl Locked {
    pub(super) fn new(files: FileSystem) -> Self {
        Self { files, gates: Mutex::default() }
    }

    /// Waits until nobody else writes to the key.
    async fn lock(&self, bucket: &str, key: &str) -> OwnedMutexGuard<()> {
        let gate = {
            let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
            if gates.len() >= KEPT_LOCKS {
                gates.retain(|_, gate| Arc::strong_count(gate) > 1);
            }
            Arc::clone(gates.entry((bucket.to_owned(), key.to_owned())).or_default())
        };
        gate.lock_owned().await
    }

    /// Removes an object whose bytes were found to be wrong after they were put in place.
    async fn undo_corrupt<T>(
        &self,
        bucket: &str,
        key: &str,
        outcome: S3Result<S3Response<T>>,
    ) -> S3Result<S3Response<T>> {
        if let Err(error) = &outcome
            && *error.code() == S3ErrorCode::BadDigest
        {
            let input = DeleteObjectInput {
                bucket: bucket.to_owned(),
                key: key.to_owned(),
                ..Default::default()
            };
            self.files.delete_object(request(input)).await?;
        }
        outcome
    }
}

/// A request that no client sent.
fn request<T>(input: T) -> S3Request<T> {
    S3Request {
        input,
        method: Default::default(),
        uri: Default::default(),
        headers: Default::default(),
        extensions: Default::default(),
        credentials: None,
        region: None,
        service: None,
        trailing_headers: None,
    }
}

/// The whole trait: methods that write to the key which they name, and those that need nothing
/// more than the file system has. One macro, because `async_trait` must see the methods.
macro_rules! implement {
    (
        locked: { $($write:ident $write_input:ident $write_output:ident,)* }
        passed: { $($pass:ident $pass_input:ident $pass_output:ident,)* }
    ) => {
        #[async_trait::async_trait]
        impl S3 for Locked {
            $(async fn $write(
                &self,
                req: S3Request<$write_input>,
            ) -> S3Result<S3Response<$write_output>> {
                let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
                let _gate = self.lock(&bucket, &key).await;
                let outcome = self.files.$write(req).await;
                self.undo_corrupt(&bucket, &key, outcome).await
            })*

            $(async fn $pass(
                &self,
                req: S3Request<$pass_input>,
            ) -> S3Result<S3Response<$pass_output>> {
                self.files.$pass(req).await
            })*
        }
    };
}

implement! {
    locked: {
        put_object PutObjectInput PutObjectOutput,
        copy_object CopyObjectInput CopyObjectOutput,
        complete_multipart_upload CompleteMultipartUploadInput CompleteMultipartUploadOutput,
        delete_object DeleteObjectInput DeleteObjectOutput,
    }
    passed: {
        abort_multipart_upload AbortMultipartUploadInput AbortMultipartUploadOutput,
        create_bucket CreateBucketInput CreateBucketOutput,
        create_multipart_upload CreateMultipartUploadInput CreateMultipartUploadOutput,
        delete_bucket DeleteBucketInput DeleteBucketOutput,
        delete_objects DeleteObjectsInput DeleteObjectsOutput,
        get_bucket_location GetBucketLocationInput GetBucketLocationOutput,
        get_object GetObjectInput GetObjectOutput,
        head_bucket HeadBucketInput HeadBucketOutput,
        head_object HeadObjectInput HeadObjectOutput,
        list_buckets ListBucketsInput ListBucketsOutput,
        list_objects ListObjectsInput ListObjectsOutput,
        list_objects_v2 ListObjectsV2Input ListObjectsV2Output,
        list_parts ListPartsInput ListPartsOutput,
        upload_part UploadPartInput UploadPartOutput,
        upload_part_copy UploadPartCopyInput UploadPartCopyOutput,
    }
}
