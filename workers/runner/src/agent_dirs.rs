//! The workspace and the artifacts directory of an agent, which must lie inside the Fabric base.

use std::io;
use std::path::{Path, PathBuf};

use errand_runner::run_dir;
use serde_json::Value;

/// Both directories, absolute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentDirs {
    pub(crate) workspace: PathBuf,
    pub(crate) artifacts: PathBuf,
}

/// Why a directory cannot be used. The texts are the reference's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("Local {0} path must be relative to the agent base directory.")]
    Absolute(&'static str),
    #[error("Local {0} path must remain within the agent base directory.")]
    Outside(&'static str),
    #[error("cannot create the {what} directory {path}: {source}")]
    Create { what: &'static str, path: PathBuf, source: io::Error },
}

impl AgentDirs {
    /// Reads both from the agent definition; touches nothing.
    pub(crate) fn of(base: &Path, agent: &Value) -> Result<Self, Error> {
        Ok(Self {
            workspace: locate(base, agent, "workspace")?,
            artifacts: locate(base, agent, "artifacts")?,
        })
    }

    /// Creates both, and makes sure that no link leads them out of the base.
    pub(crate) fn create(&self, base: &Path) -> Result<(), Error> {
        for (what, path) in [("workspace", &self.workspace), ("artifacts", &self.artifacts)] {
            run_dir::make_inside(base, path).map_err(|source| match source.kind() {
                io::ErrorKind::InvalidInput => Error::Outside(what),
                _ => Error::Create { what, path: path.clone(), source },
            })?;
        }
        Ok(())
    }
}

fn locate(base: &Path, agent: &Value, what: &'static str) -> Result<PathBuf, Error> {
    inside(base, agent["environment"][what].as_str().unwrap_or(what), what)
}

/// Reads a path that has to lie inside the base.
pub(crate) fn inside(base: &Path, written: &str, what: &'static str) -> Result<PathBuf, Error> {
    let written = Path::new(written);
    if written.is_absolute() {
        return Err(Error::Absolute(what));
    }
    run_dir::below(base, written).ok_or(Error::Outside(what))
}

#[cfg(test)]
mod tests;
