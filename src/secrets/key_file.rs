//! The key file, which only its owner can read: a key a line, 64 hexadecimal digits each.
//!
//! The first key seals. Those below it are of a rotation that is not over: they only open what
//! they sealed before.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::seal::{SealError, Sealer};
use crate::private_file;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
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
    #[error("secrets key file {path}, line {line}: {source}; restore the file from a backup",
        path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
        /// What is wrong with it.
        source: SealError,
    },
}

/// Reads the keys; there is at least one.
pub(super) fn load(path: &Path) -> Result<Vec<Sealer>, KeyFileError> {
    let (text, mode) =
        read(path).map_err(|source| KeyFileError::Io { path: path.to_owned(), source })?;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    let key = |(index, text)| {
        let (path, line) = (path.to_owned(), index + 1);
        Sealer::from_hex(text).map_err(|source| KeyFileError::Content { path, line, source })
    };
    text.trim().split('\n').enumerate().map(key).collect()
}

/// Makes the file with a random key, unless it is there.
pub(super) fn ensure(path: &Path) -> Result<(), KeyFileError> {
    let made = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            private_file::create(path, &Sealer::generate().to_hex())
        }
        _ => Ok(()),
    };
    made.map_err(|source| KeyFileError::Io { path: path.to_owned(), source })
}

/// Writes these keys in the place of those that are there.
pub(super) fn replace(path: &Path, keys: &[Sealer]) -> Result<(), KeyFileError> {
    let lines: Vec<_> = keys.iter().map(Sealer::to_hex).collect();
    let mut text = Zeroizing::new(String::with_capacity(lines.iter().map(|it| it.len() + 1).sum()));
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(line);
    }
    private_file::replace(path, &text)
        .map_err(|source| KeyFileError::Io { path: path.to_owned(), source })
}

fn read(path: &Path) -> io::Result<(Zeroizing<String>, u32)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    Ok((Zeroizing::new(io::read_to_string(file)?), mode))
}
