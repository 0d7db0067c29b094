//! Sealing: XChaCha20-Poly1305 under one key, each seal bound to what it belongs to.
//!
//! ```text
//! version (1 byte, 1) │ key id (8) │ nonce (24) │ ciphertext and tag
//! ```
//!
//! The key id tells a wrong key from a damaged seal. Header and owner are authenticated, so a
//! seal cannot be moved to another secret.

use chacha20poly1305::aead::{Aead, Generate, Key, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The only form of a seal that there is.
const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 24;
/// What every seal of one key begins with: version and key id.
pub(super) const HEADER_BYTES: usize = 1 + KEY_ID_BYTES;
const NONCE_AT: usize = HEADER_BYTES;
const CIPHERTEXT_AT: usize = NONCE_AT + NONCE_BYTES;

/// Seals and opens with one key.
#[derive(Clone)]
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
    #[error("sealed value needs the key {needed}, here is {present}; restore that key's file")]
    OtherKey {
        /// The id of the key that sealed it.
        needed: String,
        /// The ids of the keys that are here.
        present: String,
    },
    /// It was changed, or belongs to something else.
    #[error("sealed value is damaged or belongs to another secret")]
    Damaged,
    /// Nobody knows whether the key that was read before is still the one that seals.
    #[error("no value is sealed while the key file cannot be read: {0}")]
    Unreadable(String),
    /// The cipher refused the value.
    #[error("value is too long to be sealed")]
    TooLong,
}

impl Sealer {
    /// Takes the key from 64 hexadecimal digits; white space around them does not matter.
    pub fn from_hex(digits: &str) -> Result<Self, SealError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        hex::decode_to_slice(digits.trim(), &mut *key).map_err(|_| SealError::Key)?;
        Ok(Self::of(key))
    }

    /// Makes a key.
    pub(super) fn generate() -> Self {
        Self::of(Zeroizing::new(Key::<XChaCha20Poly1305>::generate().into()))
    }

    fn of(key: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let digest = Sha256::new().chain_update("errand secrets key id\n").chain_update(*key);
        let mut key_id = [0; KEY_ID_BYTES];
        key_id.copy_from_slice(&digest.finalize()[..KEY_ID_BYTES]);
        Self { key, key_id }
    }

    /// The key as [`Sealer::from_hex`] takes it.
    pub(super) fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(*self.key))
    }

    /// The name of the key, which says nothing about it.
    pub fn id(&self) -> String {
        hex::encode(self.key_id)
    }

    /// What every seal of this key begins with.
    pub(super) fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [VERSION; HEADER_BYTES];
        header[1..].copy_from_slice(&self.key_id);
        header
    }

    /// Seals a value for its owner, for example `workspace/name`.
    pub fn seal(&self, owner: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let nonce = XNonce::generate();
        let mut sealed = self.header().to_vec();
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
            let (needed, present) = (hex::encode(key_id), self.id());
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
        f.debug_struct("Sealer").field("key_id", &self.id()).finish_non_exhaustive()
    }
}
