//! Post-run actions: what may follow an agent's success.
//!
//! The registry knows which kinds are installed here and what configuration each accepts. API,
//! admission, the gate before an agent and the Act step ask it, and nobody else. How an action is
//! performed stands in the file of its kind; which one a job gets is the catalog's affair.

mod schema;

mod export;
mod occasion;
mod program;
mod publish;
mod webhook;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use streams::fact::SavedResult;

use program::Manifest;
use schema::Schema;

pub(crate) use export::{Pattern, export};
pub(crate) use occasion::Occasion;
pub use program::Programs;
pub(crate) use publish::publish;
pub use webhook::{Message, SIGNING_KEY, Unsent, Webhooks};

/// Does nothing; every platform has it.
pub const NOOP: &str = "agents.noop";

/// Tells an HTTP receiver; every platform has it, too.
pub const WEBHOOK: &str = "agents.webhook";

/// What the reference called it before.
const OLDER_NOOP: &str = "noop";

/// Checks a path in a working directory, as actions and `expect_files` take them: `*` and `?`
/// within a name, `**` for any number of directories.
pub fn check_path(written: &str) -> Result<(), String> {
    Pattern::parse(written).map(drop)
}

/// The actions that are installed.
#[derive(Debug)]
pub struct Registry {
    installed: BTreeMap<String, Installed>,
    webhooks: Webhooks,
}

/// An action that is installed.
#[derive(Debug)]
pub struct Installed {
    /// What requests call it.
    pub kind: String,
    /// A few words.
    pub title: String,
    /// A sentence.
    pub description: String,
    schema: Schema,
    pub(crate) way: Way,
}

/// How an action is performed.
#[derive(Debug)]
pub(crate) enum Way {
    Noop,
    Webhook,
    Publish,
    ExportFiles,
    Program(Box<Manifest>),
}

/// What an action came to. It may have failed and have saved results all the same.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) results: Vec<SavedResult>,
    pub(crate) failure: Option<String>,
}

/// Why an action cannot be named so.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is none of this kind.
    #[error("Unknown post-run action '{kind}'. Installed here: {}.", .installed.join(", "))]
    Unknown {
        /// The kind.
        kind: String,
        /// Those that there are.
        installed: Vec<String>,
    },
    /// It does not accept this configuration.
    #[error("Invalid config for post-run action '{kind}': {reasons}")]
    Config {
        /// The kind.
        kind: String,
        /// Everything that is wrong: where and why.
        reasons: String,
    },
}

/// Why the actions of a directory cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The directory, or something in it, cannot be read.
    #[error("{}: {reason}", .path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// A manifest says something that it may not.
    #[error("{}: {field}: {reason}", .file.display())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two actions claim one kind.
    #[error(
        "Conflicting agents.execute extensions for kind '{kind}': {first} and {}; remove one or \
         give it another kind",
        .second.display()
    )]
    Conflict {
        /// The kind.
        kind: String,
        /// What has it.
        first: String,
        /// The manifest that claims it too.
        second: PathBuf,
    },
}

impl Registry {
    /// The actions that every platform has.
    pub fn built_in(webhooks: Webhooks) -> Self {
        let nothing = json!({"type": "object", "additionalProperties": false});
        let installed = [
            (NOOP, "No-op", "Does nothing.", nothing, Way::Noop),
            webhook::definition(),
            publish::definition(),
            export::definition(),
        ];
        let installed = installed.into_iter().map(|(kind, title, description, schema, way)| {
            let installed = Installed {
                kind: kind.to_owned(),
                title: title.to_owned(),
                description: description.to_owned(),
                schema: Schema::compile(Some(schema)).expect("a schema of ours compiles"),
                way,
            };
            (kind.to_owned(), installed)
        });
        Self { installed: installed.collect(), webhooks }
    }

    /// Adds the programs that have a manifest, `<directory>/<any name>/action.json`. A manifest
    /// that is found twice, by way of a link, is one.
    pub fn install(mut self, directory: &Path) -> Result<Self, InstallError> {
        for manifest in program::manifests(directory)? {
            let conflict = |first: String| InstallError::Conflict {
                kind: manifest.kind.clone(),
                first,
                second: manifest.file.clone(),
            };
            match self.installed.get(&manifest.kind).map(|there| &there.way) {
                Some(Way::Program(there)) if **there == manifest => continue,
                Some(Way::Program(there)) => {
                    return Err(conflict(there.file.display().to_string()));
                }
                Some(_) => return Err(conflict("the platform's own".to_owned())),
                None => {}
            }
            let installed = Installed {
                kind: manifest.kind.clone(),
                title: manifest.title.clone(),
                description: manifest.description.clone(),
                schema: manifest.schema()?,
                way: Way::Program(Box::new(manifest)),
            };
            self.installed.insert(installed.kind.clone(), installed);
        }
        Ok(self)
    }

    /// Every installed action, by kind.
    pub fn installed(&self) -> impl Iterator<Item = &Installed> {
        self.installed.values()
    }

    /// The action of a kind.
    pub fn get(&self, kind: &str) -> Result<&Installed, Refused> {
        self.installed.get(canonical(kind)).ok_or_else(|| Refused::Unknown {
            kind: kind.to_owned(),
            installed: self.installed.keys().cloned().collect(),
        })
    }

    /// The action of a kind, if it may follow a job of this workspace with this configuration.
    pub fn check(
        &self,
        kind: &str,
        config: &Map<String, Value>,
        workspace: &str,
    ) -> Result<&Installed, Refused> {
        let installed = self.get(kind)?;
        let checked = installed.schema.check(config).and_then(|()| match &installed.way {
            Way::Noop | Way::Program(_) => Ok(()),
            Way::Webhook => self.webhooks.check(config),
            Way::Publish => publish::check(config),
            Way::ExportFiles => export::check(config, workspace),
        });
        let kind = kind.to_owned();
        checked.map(|()| installed).map_err(|reasons| Refused::Config { kind, reasons })
    }

    /// What sends webhooks under this registry's rules.
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }
}

impl Installed {
    /// The JSON Schema of its configuration; null when it accepts any.
    pub fn config_schema(&self) -> &Value {
        self.schema.shown()
    }

    /// The secrets that it opens: what for, and the reference.
    pub fn secrets(&self, config: &Map<String, Value>) -> BTreeMap<String, String> {
        match &self.way {
            Way::Noop | Way::Publish | Way::ExportFiles => BTreeMap::new(),
            Way::Webhook => webhook::secrets(config),
            Way::Program(manifest) => manifest.secrets.clone(),
        }
    }
}

impl Done {
    /// It failed and saved nothing.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self { results: Vec::new(), failure: Some(reason.into()) }
    }
}

/// The present name of a kind.
pub fn canonical(kind: &str) -> &str {
    if kind == OLDER_NOOP { NOOP } else { kind }
}

/// The configuration of a built-in action, as its own type.
fn read<T: serde::de::DeserializeOwned>(config: &Map<String, Value>) -> Result<T, String> {
    T::deserialize(Value::Object(config.clone())).map_err(|error| error.to_string())
}

/// A built-in action: kind, title, description, schema, way.
type Definition = (&'static str, &'static str, &'static str, Value, Way);

#[cfg(test)]
mod tests;
