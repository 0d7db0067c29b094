//! The key file: 64 hexadecimal digits that only its owner can read.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Generate, Key};
use zeroize::Zeroizing;

use super::seal::{SealError, Sealer};
use crate::private_file;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or made.
    #[error("secrets key file {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others can read it.
    #[error("secrets key file {path} has mode {mode:o}, others must not read it: chmod 600 it",
        path = path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds no key.
    #[error("secrets key file {path}: {source}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SealError,
    },
}

pub(super) fn load_or_create(path: &Path) -> Result<Sealer, KeyFileError> {
    let io = |source| KeyFileError::Io { path: path.to_owned(), source };
    let digits = match read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(path).map_err(io)?;
            read(path)
        }
        answer => answer,
    };
    let (digits, mode) = digits.map_err(io)?;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    Sealer::from_hex(&digits)
        .map_err(|source| KeyFileError::Content { path: path.to_owned(), source })
}

fn read(path: &Path) -> io::Result<(Zeroizing<String>, u32)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    Ok((Zeroizing::new(io::read_to_string(file)?), mode))
}

fn create(path: &Path) -> io::Result<()> {
    let key = Zeroizing::new(<[u8; 32]>::from(Key::<XChaCha20Poly1305>::generate()));
    private_file::create(path, &Zeroizing::new(hex::encode(*key)))
}
