//! The object store: always `aws-sdk-s3` against an endpoint. Keys are made in [`key`] only.
//!
//! A store is not believed: what was written counts once [`vouch`] has seen that it is there, and
//! what is [`read`] is what was written or an error.

mod copy;
mod find;
pub mod key;
mod list;
mod read;
mod remove;
mod upload;
mod vouch;

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use streams::envelope::MAX_PAYLOAD_BYTES;
use streams::snapshot::{ObjectRef, Part};

pub use list::{Listed, Page};
pub use read::{Body, Object, drain};
pub use upload::{PART_BYTES, Upload};
pub use vouch::Sums;

/// A store that does not answer is one that fails: nothing waits for it for ever. The second
/// bounds one request, and must let a large part pass on a slow line.
const CONNECT: Duration = Duration::from_secs(5);
const ATTEMPT: Duration = Duration::from_secs(300);

/// What a store answered wrongly is asked for again, beyond what the SDK repeats by itself.
const AGAIN: ExponentialBuilder =
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(100)).with_max_times(3);

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
    /// Whether there is a store at all; one that nobody reaches need not be asked again at once.
    answered: bool,
}

impl Error {
    pub(crate) fn new(action: &'static str, key: &str, reason: impl std::fmt::Display) -> Self {
        Self { action, key: key.to_owned(), reason: reason.to_string(), answered: true }
    }
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
        Self::of_client(client, config.bucket.clone())
    }

    /// A bucket that is reached by a client of the caller's.
    pub const fn of_client(client: Client, bucket: String) -> Self {
        Self { client, bucket }
    }

    /// Makes the bucket unless it exists.
    pub async fn ensure_bucket(&self) -> Result<(), Error> {
        if self.has_bucket().await {
            return Ok(());
        }
        let Err(error) = self.client.create_bucket().bucket(&self.bucket).send().await else {
            return Ok(());
        };
        match code(&error) {
            Some("BucketAlreadyOwnedByYou") => Ok(()),
            // By another part that starts as well, or it was there and could not be asked for.
            Some("BucketAlreadyExists") if self.has_bucket().await => Ok(()),
            _ => Err(failed("create bucket", &self.bucket, &error)),
        }
    }

    async fn has_bucket(&self) -> bool {
        self.client.head_bucket().bucket(&self.bucket).send().await.is_ok()
    }

    /// Writes a small object whole.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<ObjectRef, Error> {
        Ok(self.put_summed(key, bytes).await?.object(key))
    }

    async fn put_summed(&self, key: &str, bytes: Bytes) -> Result<Sums, Error> {
        let sums = Sums::of(&bytes);
        let put = || async {
            let sent = self.send(key, bytes.clone(), &sums).await;
            self.settle(key, &sums, sent).await
        };
        put.retry(AGAIN).when(|error: &Error| error.answered).await?;
        Ok(sums)
    }

    async fn send(&self, key: &str, bytes: Bytes, sums: &Sums) -> Result<(), Error> {
        let put = self.client.put_object().bucket(&self.bucket).key(key);
        let put = put.checksum_crc32(sums.crc32()).body(ByteStream::from(bytes)).send().await;
        put.map(drop).map_err(|error| failed("put", key, &error))
    }

    /// Begins an object of unknown length.
    pub fn upload(&self, key: &str) -> Upload {
        Upload::new(self.clone(), key.to_owned())
    }

    /// Bytes of an object; `None` when there is none.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(head) => Ok(head.content_length().and_then(|size| u64::try_from(size).ok())),
            Err(SdkError::ServiceError(error)) if error.err().is_not_found() => Ok(None),
            Err(error) => Err(failed("head", key, &error)),
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
                let bytes = self.read(object).await?;
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
    let answered = matches!(error, SdkError::ServiceError(_) | SdkError::ResponseError(_));
    Error { answered, ..Error::new(action, key, aws_sdk_s3::error::DisplayErrorContext(error)) }
}
