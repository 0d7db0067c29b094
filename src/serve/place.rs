//! The place: what claims call the run directories of this data directory. Agents that were
//! started here are found again only here, so two places must never share a name, and one must
//! keep its own whatever becomes of its host's name or of the path that leads to it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::private_file;

/// Why the place has no name.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The file cannot be read or made.
    #[error("place file {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It holds no id.
    #[error("place file {path} holds '{text}', expected a UUID; remove it when none of this \
        place's agents run, a new one is then made", path = path.display())]
    Content { path: PathBuf, text: String },
}

/// The name of the place whose data is here: a random id that is made once and kept in the file
/// `place`, behind the configured name if there is one. A copy of the directory that is to be
/// another place must not have the file.
pub(super) fn name(data_dir: &Path, configured: Option<&str>) -> Result<String, Error> {
    let id = id(data_dir.join("place"))?;
    Ok(match configured {
        Some(configured) => format!("{configured}:{id}"),
        None => id.to_string(),
    })
}

fn id(path: PathBuf) -> Result<Uuid, Error> {
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            private_file::create(&path, &Uuid::new_v4().to_string())
                .and_then(|()| std::fs::read_to_string(&path))
        }
        read => read,
    };
    match text {
        Ok(text) => {
            let text = text.trim();
            text.parse().map_err(|_| Error::Content { path, text: text.chars().take(80).collect() })
        }
        Err(source) => Err(Error::Io { path, source }),
    }
}

#[cfg(test)]
mod tests;
