//! Tokens: `errand_` and 256 random bits in base58.
//!
//! At rest there are only the first letters, by which a token is found and recognised, and the
//! SHA-256 of all of it. What has 256 random bits cannot be guessed, so it needs no slow hash as a
//! password does: more than 200 bits are left when the first letters are known.

use chacha20poly1305::aead::Generate;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const PREFIX: &str = "errand_";
const BYTES: usize = 32;

/// Letters of the public part, behind the prefix.
const PUBLIC: usize = 8;

/// The longest text that is looked at: base58 of 32 bytes has at most 44 letters.
const LONGEST: usize = PREFIX.len() + 44;

/// A token. Shows itself to nobody by accident, and is wiped when it is dropped.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// What is kept of a token besides its public part.
#[derive(Clone, Copy)]
pub struct Digest([u8; BYTES]);

impl Token {
    /// A new one.
    pub fn generate() -> Self {
        let bytes = Zeroizing::new(<[u8; BYTES]>::generate());
        Self(Zeroizing::new(format!("{PREFIX}{}", bs58::encode(*bytes).into_string())))
    }

    /// The token of a text, if it has the form of one.
    pub fn read(text: &str) -> Option<Self> {
        let letters = text.strip_prefix(PREFIX).filter(|_| text.len() <= LONGEST)?;
        let bytes = Zeroizing::new(bs58::decode(letters).into_vec().ok()?);
        (bytes.len() == BYTES).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The token itself, for whoever gets it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The part that may be seen.
    pub fn public_part(&self) -> &str {
        // 32 bytes have at least 32 letters, all of them ASCII.
        &self.0[PREFIX.len()..PREFIX.len() + PUBLIC]
    }

    /// What is kept of it.
    pub fn digest(&self) -> Digest {
        Digest(Sha256::digest(self.0.as_bytes()).into())
    }

    /// A public part as people see it.
    pub fn shown(public_part: &str) -> String {
        format!("{PREFIX}{public_part}…")
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Digest {
    /// As it is kept.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Whether what is kept is of the same token. Takes the same time whatever the answer.
    pub fn is(&self, kept: &str) -> bool {
        // What is kept badly is compared as well, and is no token's.
        let mut other = [0; BYTES];
        let readable = hex::decode_to_slice(kept, &mut other).is_ok();
        bool::from(self.0.ct_eq(&other)) && readable
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest(…)")
    }
}
