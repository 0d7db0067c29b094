//! Sealing: XChaCha20-Poly1305 under one key, each seal bound to what it belongs to.
//!
//! ```text
//! version (1 byte, 1) │ key id (8) │ nonce (24) │ ciphertext and tag
//! ```
//!
//! The key id tells a wrong key from a damaged seal. Header and owner are authenticated, so a
//! seal cannot be moved to another secret.

use std::path::Path;

use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::key_file::{self, KeyFileError};

/// The only form of a seal that there is.
const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 24;
const NONCE_AT: usize = 1 + KEY_ID_BYTES;
const CIPHERTEXT_AT: usize = NONCE_AT + NONCE_BYTES;

/// Seals and opens with one key.
pub struct Sealer {
    key: Zeroizing<[u8; KEY_BYTES]>,
    key_id: [u8; KEY_ID_BYTES],
}

/// Why something could not be sealed or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The key is not 32 bytes in hexadecimal.
    #[error("secrets key is not 64 hexadecimal digits")]
    Key,
    /// The bytes are no seal.
    #[error("sealed value has an unknown form, restore the records from a backup")]
    Form,
    /// Another key sealed it.
    #[error("sealed value needs the key {needed}, this one is {present}; restore that key file")]
    OtherKey {
        /// The id of the key that sealed it.
        needed: String,
        /// The id of the key that is here.
        present: String,
    },
    /// It was changed, or belongs to something else.
    #[error("sealed value is damaged or belongs to another secret")]
    Damaged,
    /// The cipher refused the value.
    #[error("value is too long to be sealed")]
    TooLong,
}

impl Sealer {
    /// Takes the key from 64 hexadecimal digits; white space around them does not matter.
    pub fn from_hex(digits: &str) -> Result<Self, SealError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        hex::decode_to_slice(digits.trim(), &mut *key).map_err(|_| SealError::Key)?;
        let digest = Sha256::new().chain_update("errand secrets key id\n").chain_update(*key);
        let mut key_id = [0; KEY_ID_BYTES];
        key_id.copy_from_slice(&digest.finalize()[..KEY_ID_BYTES]);
        Ok(Self { key, key_id })
    }

    /// Takes the key from a file, which is made with a random key when it is missing.
    pub fn from_key_file(path: &Path) -> Result<Self, KeyFileError> {
        key_file::load_or_create(path)
    }

    /// Seals a value for its owner, for example `workspace/name`.
    pub fn seal(&self, owner: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let nonce = XNonce::generate();
        let mut sealed = vec![VERSION];
        sealed.extend(self.key_id);
        let aad = authenticated(&sealed, owner);
        sealed.extend(nonce);
        let payload = Payload { msg: plain, aad: &aad };
        sealed.extend(self.cipher().encrypt(&nonce, payload).map_err(|_| SealError::TooLong)?);
        Ok(sealed)
    }

    /// Opens what was sealed for the same owner.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let (Some(header), Some(nonce), Some(ciphertext)) = (
            sealed.get(..NONCE_AT),
            sealed.get(NONCE_AT..CIPHERTEXT_AT),
            sealed.get(CIPHERTEXT_AT..),
        ) else {
            return Err(SealError::Form);
        };
        let Some((&VERSION, key_id)) = header.split_first() else {
            return Err(SealError::Form);
        };
        if key_id != self.key_id {
            let (needed, present) = (hex::encode(key_id), hex::encode(self.key_id));
            return Err(SealError::OtherKey { needed, present });
        }
        let nonce = XNonce::try_from(nonce).map_err(|_| SealError::Form)?;
        let payload = Payload { msg: ciphertext, aad: &authenticated(header, owner) };
        let plain = self.cipher().decrypt(&nonce, payload).map_err(|_| SealError::Damaged)?;
        Ok(Zeroizing::new(plain))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.key).into())
    }
}

fn authenticated(header: &[u8], owner: &str) -> Vec<u8> {
    [header, owner.as_bytes()].concat()
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("key_id", &hex::encode(self.key_id)).finish_non_exhaustive()
    }
}
