//! Passwords of the server's users: each in a private file, kept from one time to the next. The
//! server is given hashes.
//!
//! bcrypt is the only hash that it knows. Its cost is there to slow down whoever tries words; 256
//! random bits cannot be tried at any cost, and the server pays it at each connection: the least
//! will do.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Generate, Key};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Error;
use crate::private_file;

/// The least that bcrypt has.
const COST: u32 = 4;

/// Digits of a password, two for each of 32 bytes.
const DIGITS: usize = 64;

/// The users' hashes.
#[derive(Debug)]
pub struct Passwords(BTreeMap<String, String>);

impl Passwords {
    /// Those of these users, whose files are in a directory. Who has none is given one; those to
    /// be rotated are given another.
    pub fn keep(directory: &Path, users: &[String], rotate: &[String]) -> Result<Self, Error> {
        if let Some(unknown) = rotate.iter().find(|it| !users.contains(it)) {
            return Err(Error::NoUser(unknown.clone()));
        }
        let failed = |act, reason| Error::File { act, path: directory.to_owned(), reason };
        fs::create_dir_all(directory).map_err(|reason| failed("make the directory", reason))?;
        let hashed = users.iter().map(|user| {
            let path = file(directory, user);
            if rotate.contains(user) {
                remove(&path)?;
            }
            Ok((user.clone(), hash(user, &kept(&path)?)))
        });
        Ok(Self(hashed.collect::<Result<_, Error>>()?))
    }

    /// The hash for a user; of one that has no password, what no password has.
    pub(super) fn hash(&self, user: &str) -> &str {
        self.0.get(user).map_or("!", String::as_str)
    }
}

/// Where a user's password is.
pub(super) fn file(directory: &Path, user: &str) -> PathBuf {
    directory.join(format!("{user}.password"))
}

/// The password in a file, which is made when it is missing.
fn kept(path: &Path) -> Result<Zeroizing<String>, Error> {
    let failed = |act, reason| Error::File { act, path: path.to_owned(), reason };
    if !path.exists() {
        let made: [u8; 32] = Key::<XChaCha20Poly1305>::generate().into();
        let made = Zeroizing::new(made);
        let password = Zeroizing::new(hex::encode(*made));
        private_file::create(path, &password).map_err(|reason| failed("write", reason))?;
    }
    let line = Zeroizing::new(fs::read_to_string(path).map_err(|reason| failed("read", reason))?);
    let password = Zeroizing::new(line.trim().to_owned());
    let is_one = password.len() == DIGITS && password.bytes().all(|it| it.is_ascii_hexdigit());
    if is_one { Ok(password) } else { Err(Error::Password(path.to_owned())) }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(reason) if reason.kind() != ErrorKind::NotFound => {
            Err(Error::File { act: "remove", path: path.to_owned(), reason })
        }
        _ => Ok(()),
    }
}

/// The same each time, so that a configuration that is written anew changes only where something
/// has changed. The salt gives nothing away: what it is made of cannot be tried either.
fn hash(user: &str, password: &str) -> String {
    let digest = Sha256::digest(format!("errand nats salt\n{user}\n{password}"));
    let mut salt = [0; 16];
    salt.copy_from_slice(&digest[..16]);
    let parts = bcrypt::hash_with_salt(password, COST, salt);
    parts.map_or_else(|_| "!".to_owned(), |it| it.format_for_version(bcrypt::Version::TwoA))
}
