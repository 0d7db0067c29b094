//! Contexts: which server and workspace a command talks to.
//!
//! `~/.config/errand/config.yaml` (or `$ERRAND_CONFIG`), then `ERRAND_BASE_URL`,
//! `ERRAND_WORKSPACE`, `ERRAND_TOKEN`, then flags.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::home;

/// Where a client turns when nothing says otherwise: what `errand up` listens on.
const DEFAULT_BASE_URL: &str = "http://127.0.0.1:7740";
const DEFAULT_NAME: &str = "default";

/// What a command works with.
#[derive(Clone, PartialEq, Eq)]
pub struct Context {
    /// `http(s)://host:port`, without a slash at its end.
    pub base_url: String,
    /// The workspace.
    pub workspace: String,
    /// Sent as a bearer token.
    pub token: Option<String>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.workspace, self.base_url)
    }
}

/// What flags or variables say.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// `--context`.
    pub context: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--workspace`.
    pub workspace: Option<String>,
    /// `ERRAND_TOKEN`.
    pub token: Option<String>,
}

/// The file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The one in use.
    pub current_context: String,
    /// All of them.
    #[serde(default)]
    pub contexts: BTreeMap<String, Entry>,
}

/// One context in the file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Why there is no context.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// The file is not of its form.
    #[error("{} is no file of contexts: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The parser's words.
        reason: String,
    },
    /// There is no such context.
    #[error("no context '{name}' in {}; there are: {known}", path.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
        /// Those that exist.
        known: String,
    },
    /// The address of the server is no address.
    #[error("Invalid base URL: '{0}'; it must start with http:// or https:// and name a host")]
    BaseUrl(String),
}

impl Choice {
    /// What is not chosen yet is taken from the environment. Setting a variable to nothing is not
    /// setting it.
    pub fn or_environment(self) -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            context: self.context.or_else(|| variable("ERRAND_CONTEXT")),
            base_url: self.base_url.or_else(|| variable("ERRAND_BASE_URL")),
            workspace: self.workspace.or_else(|| variable("ERRAND_WORKSPACE")),
            token: self.token.or_else(|| variable("ERRAND_TOKEN")),
        }
    }
}

impl Default for Contexts {
    fn default() -> Self {
        Self { current_context: DEFAULT_NAME.to_owned(), contexts: BTreeMap::new() }
    }
}

impl Contexts {
    /// Where the file is.
    pub fn path() -> PathBuf {
        match std::env::var_os("ERRAND_CONFIG") {
            Some(path) => path.into(),
            None => home().join(".config/errand/config.yaml"),
        }
    }

    /// Reads the file; one that does not exist has no contexts.
    pub fn load() -> Result<Self, Error> {
        let path = Self::path();
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_saphyr::from_str(&text)
                .map_err(|reason| Error::Syntax { path, reason: reason.to_string() }),
            Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(reason) => Err(Error::File { path, reason }),
        }
    }

    /// Writes the file whole or not at all, readable by its owner only.
    pub fn save(&self) -> Result<(), Error> {
        let path = Self::path();
        let write = || -> std::io::Result<()> {
            let text = serde_saphyr::to_string(self).map_err(std::io::Error::other)?;
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir)?;
            }
            let temporary = path.with_extension(format!("new.{}", std::process::id()));
            let mut options = std::fs::File::options();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            std::fs::rename(&temporary, &path)
        };
        write().map_err(|reason| Error::File { path: path.clone(), reason })
    }

    /// Makes a context current.
    pub fn switch(&mut self, name: &str) -> Result<(), Error> {
        if !self.contexts.contains_key(name) && name != DEFAULT_NAME {
            return Err(self.unknown(name));
        }
        name.clone_into(&mut self.current_context);
        Ok(())
    }

    /// Forgets a context; says whether it was the current one, in whose place the default is now.
    pub fn remove(&mut self, name: &str) -> Result<bool, Error> {
        if self.contexts.remove(name).is_none() {
            return Err(self.unknown(name));
        }
        let was_current = self.current_context == name;
        if was_current {
            DEFAULT_NAME.clone_into(&mut self.current_context);
        }
        Ok(was_current)
    }

    /// What a command works with: flags and variables over the file over the defaults.
    pub fn choose(&self, choice: &Choice) -> Result<Context, Error> {
        let name = choice.context.as_ref().unwrap_or(&self.current_context);
        let entry = match self.contexts.get(name) {
            Some(entry) => entry.clone(),
            None if name == DEFAULT_NAME => Entry::default(),
            None => return Err(self.unknown(name)),
        };
        let base_url = choice.base_url.clone().or(entry.base_url);
        let workspace = choice.workspace.clone().or(entry.workspace);
        Ok(Context {
            base_url: valid_base_url(base_url.as_deref().unwrap_or(DEFAULT_BASE_URL))?,
            workspace: workspace.unwrap_or_else(|| DEFAULT_NAME.to_owned()),
            token: choice.token.clone().or(entry.token),
        })
    }

    fn unknown(&self, name: &str) -> Error {
        let known: Vec<_> = self.contexts.keys().cloned().collect();
        Error::Unknown { name: name.to_owned(), path: Self::path(), known: known.join(", ") }
    }
}

/// The address without a slash at its end.
pub fn valid_base_url(text: &str) -> Result<String, Error> {
    let bad = || Error::BaseUrl(text.to_owned());
    let url = reqwest::Url::parse(text).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests;
