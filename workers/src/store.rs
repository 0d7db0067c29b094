//! The object store: always `aws-sdk-s3` against an endpoint. Keys are made in [`key`] only.

pub mod key;
mod upload;

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use streams::envelope::MAX_PAYLOAD_BYTES;
use streams::snapshot::{ObjectRef, Part};

pub use upload::{PART_BYTES, Upload};

/// A store that does not answer is one that fails: nothing waits for it for ever. The second
/// bounds one request, and must let a large part pass on a slow line.
const CONNECT: Duration = Duration::from_secs(5);
const ATTEMPT: Duration = Duration::from_secs(300);

/// How to reach the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// `http(s)://host:port`.
    pub endpoint: String,
    /// The bucket; made when it does not exist.
    pub bucket: String,
    /// Access key id.
    pub access_key: String,
    /// Secret access key.
    pub secret_key: String,
    /// Region, for stores that care.
    #[serde(default = "default_region")]
    pub region: String,
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

/// Why the store did not do it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("object store: {action} '{key}': {reason}")]
pub struct Error {
    action: &'static str,
    key: String,
    reason: String,
}

impl Error {
    pub(crate) fn new(action: &'static str, key: &str, reason: impl std::fmt::Display) -> Self {
        Self { action, key: key.to_owned(), reason: reason.to_string() }
    }
}

/// A readable object.
#[derive(Debug)]
pub struct Object {
    /// Bytes in `body`: the whole object, or the range asked for.
    pub size: u64,
    /// The bytes.
    pub body: ByteStream,
}

/// A bucket.
#[derive(Clone, Debug)]
pub struct Store {
    client: Client,
    bucket: String,
}

impl Store {
    /// Sets up a client; talks to nobody yet.
    pub fn new(config: &StoreConfig) -> Self {
        let credentials =
            Credentials::new(&config.access_key, &config.secret_key, None, None, "errand");
        // Many stores refuse the checksums that the SDK adds by itself; uploads set their own.
        let client = Client::from_conf(
            aws_sdk_s3::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .endpoint_url(&config.endpoint)
                .region(Region::new(config.region.clone()))
                .credentials_provider(credentials)
                .force_path_style(true)
                .timeout_config(
                    TimeoutConfig::builder()
                        .connect_timeout(CONNECT)
                        .operation_attempt_timeout(ATTEMPT)
                        .build(),
                )
                .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
                .build(),
        );
        Self { client, bucket: config.bucket.clone() }
    }

    /// Makes the bucket unless it exists.
    pub async fn ensure_bucket(&self) -> Result<(), Error> {
        if self.client.head_bucket().bucket(&self.bucket).send().await.is_ok() {
            return Ok(());
        }
        match self.client.create_bucket().bucket(&self.bucket).send().await {
            Ok(_) => Ok(()),
            Err(error) if code(&error) == Some("BucketAlreadyOwnedByYou") => Ok(()),
            Err(error) => Err(failed("create bucket", &self.bucket, &error)),
        }
    }

    /// Writes a small object whole.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<ObjectRef, Error> {
        let sha256 = hex::encode(Sha256::digest(&bytes));
        let size = bytes.len() as u64;
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .body(ByteStream::from(bytes))
            .send()
            .await
            .map_err(|error| failed("put", key, &error))?;
        Ok(ObjectRef { key: key.to_owned(), size, sha256 })
    }

    /// Begins an object of unknown length.
    pub fn upload(&self, key: &str) -> Upload {
        Upload::new(self.client.clone(), self.bucket.clone(), key.to_owned())
    }

    /// Opens an object; `None` when there is none.
    pub async fn get(&self, key: &str) -> Result<Option<Object>, Error> {
        self.get_range(key, None).await
    }

    /// Opens part of an object; both ends of the range are included.
    pub async fn get_range(
        &self,
        key: &str,
        range: Option<(u64, u64)>,
    ) -> Result<Option<Object>, Error> {
        let range = range.map(|(from, to)| format!("bytes={from}-{to}"));
        let found =
            self.client.get_object().bucket(&self.bucket).key(key).set_range(range).send().await;
        match found {
            Ok(object) => {
                let size = object.content_length().and_then(|size| u64::try_from(size).ok());
                Ok(Some(Object { size: size.unwrap_or_default(), body: object.body }))
            }
            Err(error) if code(&error) == Some("NoSuchKey") => Ok(None),
            Err(error) => Err(failed("get", key, &error)),
        }
    }

    /// Reads a small object whole.
    pub async fn read(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let Some(object) = self.get(key).await? else { return Ok(None) };
        let bytes = object.body.collect().await.map_err(|error| Error::new("get", key, error))?;
        Ok(Some(bytes.into_bytes()))
    }

    /// Bytes of an object; `None` when there is none.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(head) => Ok(head.content_length().and_then(|size| u64::try_from(size).ok())),
            Err(SdkError::ServiceError(error)) if error.err().is_not_found() => Ok(None),
            Err(error) => Err(failed("head", key, &error)),
        }
    }

    /// Copies an object within the bucket.
    pub async fn copy(&self, from: &str, to: &str) -> Result<(), Error> {
        let source = format!("{}/{from}", self.bucket);
        let copy = self.client.copy_object().bucket(&self.bucket).copy_source(source).key(to);
        copy.send().await.map(drop).map_err(|error| failed("copy to", to, &error))
    }

    /// Removes an object; removing what is not there is no failure.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        let delete = self.client.delete_object().bucket(&self.bucket).key(key).send().await;
        delete.map(drop).map_err(|error| failed("delete", key, &error))
    }

    /// The keys below a prefix, at most a thousand; call again after removing them.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix).send().await;
        let list = list.map_err(|error| failed("list", prefix, &error))?;
        Ok(list.contents().iter().filter_map(|object| object.key()).map(str::to_owned).collect())
    }

    /// Removes every object below a prefix.
    pub async fn delete_below(&self, prefix: &str) -> Result<(), Error> {
        loop {
            let keys = self.list(prefix).await?;
            if keys.is_empty() {
                return Ok(());
            }
            for key in keys {
                self.delete(&key).await?;
            }
        }
    }

    /// Wraps a value for a message: inside while it is small, else stored under `key`.
    pub async fn part(&self, key: &str, value: serde_json::Value) -> Result<Part, Error> {
        let bytes = serde_json::to_vec(&value).map_err(|error| Error::new("encode", key, error))?;
        // Half of the limit: the message carries more than this one value.
        if bytes.len() <= MAX_PAYLOAD_BYTES / 2 {
            return Ok(Part::Inline(value));
        }
        Ok(Part::Stored(self.put(key, bytes.into()).await?))
    }

    /// Unwraps such a value.
    pub async fn open<T: DeserializeOwned>(&self, part: &Part) -> Result<T, Error> {
        match part {
            Part::Inline(value) => {
                T::deserialize(value).map_err(|error| Error::new("decode", "inline part", error))
            }
            Part::Stored(object) => {
                let bytes = self.read(&object.key).await?;
                let bytes =
                    bytes.ok_or_else(|| Error::new("get", &object.key, "it does not exist"))?;
                serde_json::from_slice(&bytes)
                    .map_err(|error| Error::new("decode", &object.key, error))
            }
        }
    }
}

fn code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> Option<&str> {
    error.as_service_error().and_then(ProvideErrorMetadata::code)
}

fn failed<E, R>(action: &'static str, key: &str, error: &SdkError<E, R>) -> Error
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
    R: std::fmt::Debug,
{
    Error::new(action, key, aws_sdk_s3::error::DisplayErrorContext(error))
}
