//! The directory of a batch: which batch it is, what became of each line, and the results. What
//! is needed to go on is on the disk before anything is sent.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::index::Index;
use crate::cli::Usage;

/// What says which batch it is. No job is called so: names begin with a letter.
const BEGUN: &str = ".batch.json";

const INDEX: &str = "index.jsonl";

/// What is locked; it is empty.
const LOCK: &str = ".batch.lock";

/// A batch that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) version: u32,
    /// Its name.
    pub(super) group: String,
    /// Its workspace.
    pub(super) workspace: String,
    /// What makes its lines the same jobs however often they are sent.
    pub(super) key: String,
}

/// The directory of a batch.
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) begun: Begun,
    pub(super) index: Index,
    /// Held while somebody works here: two would write over each other's entries.
    _lock: File,
}

impl Directory {
    /// Begins a batch in a directory that has none, or goes on with the one that it has.
    pub(super) fn open(
        path: PathBuf,
        group: Option<String>,
        workspace: &str,
        resume: bool,
    ) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        fs::create_dir_all(&path).with_context(|| format!("cannot make {shown}"))?;
        let lock =
            File::create(path.join(LOCK)).with_context(|| format!("cannot write in {shown}"))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Usage(format!(
                "another `errand batch run` works in {shown}; wait for it, end it, or name another \
                 directory with -o"
            ))
            .into());
        }
        let begun = match (known(&path)?, resume) {
            (Some(begun), true) => begun,
            (Some(begun), false) => {
                return Err(Usage(format!(
                    "{shown} has a batch already, '{}'. Go on with it by --resume, or name \
                     another directory with -o.",
                    begun.group
                ))
                .into());
            }
            (None, _) => {
                let key = uuid::Uuid::new_v4().simple().to_string();
                let group = group.clone().unwrap_or_else(|| format!("batch-{key}"));
                let begun = Begun { version: 1, group, workspace: workspace.to_owned(), key };
                write(&path, &begun).with_context(|| format!("cannot write in {shown}"))?;
                begun
            }
        };
        let differs = |what: &str, given: &str, its: &str| {
            Usage(format!("{shown} has a batch of {what} '{its}', not '{given}'; leave that out"))
        };
        if begun.workspace != workspace {
            return Err(differs("workspace", workspace, &begun.workspace).into());
        }
        if let Some(group) = group.filter(|group| *group != begun.group) {
            return Err(differs("group", &group, &begun.group).into());
        }
        let index = Index::open(path.join(INDEX))?;
        Ok(Self { path, begun, index, _lock: lock })
    }

    /// Where the index is.
    pub(super) fn index_path(&self) -> PathBuf {
        self.path.join(INDEX)
    }
}

/// Where the results of a job go. One that is called as the index is goes beside it.
pub(super) fn of_job(directory: &Path, name: &str) -> PathBuf {
    directory.join(if name == INDEX { "index.jsonl@job" } else { name })
}

fn known(path: &Path) -> anyhow::Result<Option<Begun>> {
    let file = path.join(BEGUN);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(format!("cannot read {}", file.display())),
    };
    let begun: Begun = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} does not say which batch it is", file.display()))?;
    if begun.version != 1 {
        bail!("{} is of a later errand; use that one", file.display());
    }
    Ok(Some(begun))
}

fn write(path: &Path, begun: &Begun) -> anyhow::Result<()> {
    let temporary = path.join(format!("{BEGUN}.part"));
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(begun)?)?;
    file.sync_all()?;
    fs::rename(&temporary, path.join(BEGUN))?;
    Ok(File::open(path)?.sync_all()?)
}

#[cfg(test)]
mod tests;
