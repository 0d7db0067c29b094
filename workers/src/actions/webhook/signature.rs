//! Signatures of webhooks, as the Standard Webhooks specification has them: `v1,` and the base64
//! of HMAC-SHA256 over `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// In front of a key that is written in base64.
const PREFIX: &str = "whsec_";

/// The header's value. The reason of a failure names no part of the key.
pub(super) fn sign(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> Result<String, String> {
    let key = match secret.trim_end().strip_prefix(PREFIX) {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| {
            format!("the signing key begins with {PREFIX} and is no base64 after it")
        })?,
        None => secret.as_bytes().to_vec(),
    };
    // Anybody could sign with it.
    if key.is_empty() {
        return Err("the signing key is empty".to_owned());
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| error.to_string())?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests;
