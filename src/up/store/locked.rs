//! s3s-fs with its faults mended.
//!
//! It checks `If-None-Match` and renames afterwards, so that several writers win: here each
//! write to a key waits for the one before. It answers `BadDigest` after it has put the
//! object in place: here such an object is removed again. It reads 4 KiB at a time, each on another
//! thread, which gives 40 MB/s: here it reads more at once. And it leaves things behind, and lists
//! no uploads: see [`Litter`].

use std::collections::{BTreeMap, HashMap};
use std::io::{self, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};
use s3s_fs::FileSystem;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::OwnedMutexGuard;
use tokio_util::io::ReaderStream;

use super::litter::Litter;

/// Uploads that are listed at once, unless fewer are asked for.
const UPLOADS_PAGE: i32 = 1000;

/// Locks of keys that nobody uses are dropped when there are so many.
const KEPT_LOCKS: usize = 1024;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 128 * 1024;

/// Bucket, key, upload id.
type UploadName = (String, String, String);

type Gate = Arc<tokio::sync::Mutex<()>>;

/// The file system, with one writer at a time for each key.
pub(super) struct Locked {
    files: FileSystem,
    litter: Litter,
    /// Those that were begun and are not over, and when. A restart ends them all.
    uploads: Mutex<BTreeMap<UploadName, SystemTime>>,
    gates: Mutex<HashMap<(String, String), Gate>>,
}

impl Locked {
    pub(super) fn new(files: FileSystem, litter: Litter) -> Self {
        Self { files, litter, uploads: Mutex::default(), gates: Mutex::default() }
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
            self.litter.forget_object(bucket, key).map_err(S3Error::internal_error)?;
        }
        outcome
    }

    /// What it says of the object, and the bytes by a way of our own. A suffix that is longer than the
    /// object is all of it, which s3s-fs does not know.
    async fn get(
        &self,
        mut req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let path = self.litter.object(&req.input.bucket, &req.input.key);
        let Ok(meta) = tokio::fs::metadata(&path).await else {
            // It has the words for that.
            return self.files.get_object(req).await;
        };
        let range = req.input.range;
        let part = range.map_or(Ok(0..meta.len()), |range| range.check(meta.len()))?;
        if range.is_some() {
            let last = part.end.checked_sub(1).ok_or(S3ErrorCode::InvalidRange)?;
            req.input.range = Some(Range::Int { first: part.start, last: Some(last) });
        }
        let mut found = self.files.get_object(req).await?;
        let mut file = File::open(path).await.map_err(|_| S3ErrorCode::NoSuchKey)?;
        let bytes = part.end - part.start;
        if found.output.content_length != i64::try_from(bytes).ok() {
            return Err(S3Error::internal_error(io::Error::other("it was replaced just now")));
        }
        file.seek(SeekFrom::Start(part.start)).await.map_err(S3Error::internal_error)?;
        let body = ReaderStream::with_capacity(file.take(bytes), CHUNK_BYTES);
        found.output.body = Some(StreamingBlob::wrap(body));
        Ok(found)
    }

    async fn delete(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
        let _gate = self.lock(&bucket, &key).await;
        let deleted = self.files.delete_object(req).await?;
        self.litter.forget_object(&bucket, &key).map_err(S3Error::internal_error)?;
        Ok(deleted)
    }

    async fn begin(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
        let begun = self.files.create_multipart_upload(req).await?;
        let id = begun.output.upload_id.clone().unwrap_or_default();
        self.open_uploads().insert((bucket, key, id), SystemTime::now());
        Ok(begun)
    }

    /// s3s-fs takes the upload apart before it has the whole: one that fails is over as well.
    async fn complete(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let CompleteMultipartUploadInput { bucket, key, upload_id, .. } = &req.input;
        let upload = (bucket.clone(), key.clone(), upload_id.clone());
        let _gate = self.lock(bucket, key).await;
        self.litter.forget_sums(bucket, key).map_err(S3Error::internal_error)?;
        self.closing(&upload)?;
        let completed = self.files.complete_multipart_upload(req).await;
        self.close(&upload)?;
        completed
    }

    async fn abort(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let AbortMultipartUploadInput { bucket, key, upload_id, .. } = req.input;
        let upload = (bucket, key, upload_id);
        let _gate = self.lock(&upload.0, &upload.1).await;
        self.closing(&upload)?;
        self.close(&upload)?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    async fn uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let ListMultipartUploadsInput { bucket, prefix, max_uploads, .. } = req.input;
        let below = prefix.as_deref().unwrap_or_default();
        let (after, id) = (req.input.key_marker.unwrap_or_default(), req.input.upload_id_marker);
        let is_wanted = |(of, key, this): &UploadName| {
            let is_next = match &id {
                Some(id) => (key, this) > (&after, id),
                None => *key > after,
            };
            *of == bucket && key.starts_with(below) && is_next
        };
        let page = usize::try_from(max_uploads.unwrap_or(UPLOADS_PAGE)).unwrap_or_default();
        let open = self.open_uploads();
        let mut open = open.iter().filter(|(upload, _)| is_wanted(upload)).map(shown);
        let uploads: Vec<_> = open.by_ref().take(page).collect();
        let last = open.next().and(uploads.last());
        Ok(S3Response::new(ListMultipartUploadsOutput {
            next_key_marker: last.and_then(|upload| upload.key.clone()),
            next_upload_id_marker: last.and_then(|upload| upload.upload_id.clone()),
            is_truncated: Some(last.is_some()),
            uploads: Some(uploads),
            bucket: Some(bucket),
            prefix,
            ..Default::default()
        }))
    }

    fn open_uploads(&self) -> MutexGuard<'_, BTreeMap<UploadName, SystemTime>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closing(&self, upload: &UploadName) -> S3Result<()> {
        let is_open = self.open_uploads().contains_key(upload);
        if is_open { Ok(()) } else { Err(S3ErrorCode::NoSuchUpload.into()) }
    }

    fn close(&self, upload: &UploadName) -> S3Result<()> {
        let id = uuid::Uuid::parse_str(&upload.2).map_err(S3Error::internal_error)?;
        self.litter.forget_upload(id).map_err(S3Error::internal_error)?;
        self.open_uploads().remove(upload);
        Ok(())
    }
}

fn shown(((_, key, id), begun): (&UploadName, &SystemTime)) -> MultipartUpload {
    MultipartUpload {
        key: Some(key.clone()),
        upload_id: Some(id.clone()),
        initiated: Some((*begun).into()),
        ..Default::default()
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
        mended: { $($own:ident $by:ident $own_input:ident $own_output:ident,)* }
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

            $(async fn $own(
                &self,
                req: S3Request<$own_input>,
            ) -> S3Result<S3Response<$own_output>> {
                self.$by(req).await
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
    }
    mended: {
        get_object get GetObjectInput GetObjectOutput,
        delete_object delete DeleteObjectInput DeleteObjectOutput,
        create_multipart_upload begin CreateMultipartUploadInput CreateMultipartUploadOutput,
        complete_multipart_upload complete CompleteMultipartUploadInput CompleteMultipartUploadOutput,
        abort_multipart_upload abort AbortMultipartUploadInput AbortMultipartUploadOutput,
        list_multipart_uploads uploads ListMultipartUploadsInput ListMultipartUploadsOutput,
    }
    passed: {
        create_bucket CreateBucketInput CreateBucketOutput,
        delete_bucket DeleteBucketInput DeleteBucketOutput,
        delete_objects DeleteObjectsInput DeleteObjectsOutput,
        get_bucket_location GetBucketLocationInput GetBucketLocationOutput,
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
