//! Whether a store has what it was given. Its answer to an upload is not proof: answers get lost
//! after the bytes are stored, and some stores say yes to bytes that they do not keep.
//!
//! So it is asked for size and checksum afterwards. One that keeps no checksum, or another than
//! ours, has the object read back: that costs one more reading of it, and our own digest decides.

use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::types::ChecksumMode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use streams::snapshot::ObjectRef;

use super::{Error, Store, failed};

/// Sums of bytes that go to the store.
#[derive(Default)]
pub(super) struct Summing {
    sha256: Sha256,
    crc: Crc,
    size: u64,
}

impl Summing {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.crc.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// The sums, given the checksums of the parts in which the bytes were sent; there are none
    /// when they were sent in one piece.
    pub(super) fn finish(self, parts: &[u32]) -> Sums {
        let joined: Vec<u8> = parts.iter().flat_map(|part| part.to_be_bytes()).collect();
        let in_parts = format!("{}-{}", encode(crc32(&joined)), parts.len());
        Sums {
            size: self.size,
            sha256: hex::encode(self.sha256.finalize()),
            crc: self.crc.sum(),
            in_parts: (!parts.is_empty()).then_some(in_parts),
        }
    }
}

/// What the bytes of an object must come to.
#[derive(Clone, Debug)]
pub struct Sums {
    size: u64,
    sha256: String,
    crc: u32,
    /// The checksum that a store makes of those of the parts.
    in_parts: Option<String>,
}

impl Sums {
    /// Of bytes that are at hand.
    pub fn of(bytes: &[u8]) -> Self {
        let mut summing = Summing::default();
        summing.update(bytes);
        summing.finish(&[])
    }

    /// In the form that headers carry.
    pub(super) fn crc32(&self) -> String {
        encode(self.crc)
    }

    fn agrees(&self, stored: &str) -> bool {
        stored == self.crc32() || Some(stored) == self.in_parts.as_deref()
    }

    /// The digest.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The object, when it stands at `key`.
    pub fn object(&self, key: &str) -> ObjectRef {
        ObjectRef { key: key.to_owned(), size: self.size, sha256: self.sha256.clone() }
    }
}

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

pub(super) fn encode(crc: u32) -> String {
    STANDARD.encode(crc.to_be_bytes())
}

impl Store {
    /// Whether these very bytes stand at `key` already.
    pub async fn holds(&self, key: &str, sums: &Sums) -> Result<bool, Error> {
        Ok(self.objection(key, sums).await?.is_none())
    }

    /// Whether what was `sent` to `key` is there, whatever the store answered to it.
    pub(super) async fn settle(
        &self,
        key: &str,
        sums: &Sums,
        sent: Result<(), Error>,
    ) -> Result<(), Error> {
        if let Err(error) = &sent
            && !error.answered
        {
            return sent;
        }
        match self.objection(key, sums).await? {
            None => Ok(()),
            Some(objection) => sent.and(Err(Error::new("verify", key, objection))),
        }
    }

    /// What speaks against these bytes standing at `key`.
    async fn objection(&self, key: &str, sums: &Sums) -> Result<Option<String>, Error> {
        let head = self.client.head_object().bucket(&self.bucket).key(key);
        let head = match head.checksum_mode(ChecksumMode::Enabled).send().await {
            Ok(head) => head,
            Err(SdkError::ServiceError(error)) if error.err().is_not_found() => {
                return Ok(Some("it is not there".to_owned()));
            }
            Err(error) => return Err(failed("verify", key, &error)),
        };
        let size = head.content_length().and_then(|size| u64::try_from(size).ok());
        if size != Some(sums.size) {
            let size = size.unwrap_or_default();
            return Ok(Some(format!("it has {size} bytes there, {} were sent", sums.size)));
        }
        if head.checksum_crc32().is_some_and(|stored| sums.agrees(stored)) {
            return Ok(None);
        }
        let Some(object) = self.fetch(&sums.object(key)).await? else {
            return Ok(Some("it is gone".to_owned()));
        };
        let read = object.body.try_for_each(|_| std::future::ready(Ok(()))).await;
        Ok(read.err().map(|error| error.to_string()))
    }
}
