//! The layers: file, environment, flags. An unknown key is an error that names where it stands.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::Config;
use super::section::Section;

/// Variables with this prefix are keys; the rest of `ERRAND_…` belongs to the client.
const PREFIX: &str = "ERRAND__";

/// The file that is read when none is named, if it exists.
const DEFAULT_FILE: &str = "errand.toml";

/// What flags say.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config`: the file, which then must exist.
    pub file: Option<PathBuf>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--slots`.
    pub slots: Option<u64>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{} is not valid TOML: {reason}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The parser's words.
        reason: String,
    },
    /// A key that does not exist.
    #[error("{origin}: unknown key '{key}', expected one of {known}")]
    Unknown {
        /// The file, or the variable.
        origin: String,
        /// The key.
        key: String,
        /// The keys that exist there.
        known: String,
    },
    /// A value of the wrong form.
    #[error("{origin}: {key}: {reason}")]
    Value {
        /// The file, or the variable.
        origin: String,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A value that cannot be used.
    #[error("configuration: {key}: {reason}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// What is wrong and what to do.
        reason: String,
    },
}

pub(super) fn load(
    overrides: &Overrides,
    variable: &dyn Fn(&str) -> Option<String>,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Config, Error> {
    let mut config = Config::default();
    let named =
        overrides.file.clone().or_else(|| variable("ERRAND_PLATFORM_CONFIG").map(PathBuf::from));
    match named {
        Some(file) => read_file(&mut config, &file)?,
        None if Path::new(DEFAULT_FILE).exists() => {
            read_file(&mut config, Path::new(DEFAULT_FILE))?
        }
        None => {}
    }
    for (name, value) in variables {
        if let Some(path) = name.strip_prefix(PREFIX) {
            read_variable(&mut config, &name, &path.to_lowercase(), &value)?;
        }
    }
    if let Some(data_dir) = &overrides.data_dir {
        config.general.data_dir = Some(data_dir.clone());
    }
    config.general.listen = overrides.listen.unwrap_or(config.general.listen);
    config.worker.slots = overrides.slots.unwrap_or(config.worker.slots);
    Ok(config)
}

fn read_file(config: &mut Config, file: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|reason| Error::Unreadable { file: file.to_owned(), reason })?;
    let table: toml::Table = text.parse().map_err(|reason: toml::de::Error| Error::Syntax {
        file: file.to_owned(),
        reason: reason.to_string(),
    })?;
    read_table(config, &file.display().to_string(), "", table)
}

/// Reads a table whose name is `path`; tables in it are sections, or lead to sections.
fn read_table(
    config: &mut Config,
    origin: &str,
    path: &str,
    table: toml::Table,
) -> Result<(), Error> {
    for (key, value) in table {
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let inner = config.sections().iter().any(|section| {
            section.name() == full || section.name().starts_with(&format!("{full}."))
        });
        match value {
            toml::Value::Table(table) if inner => read_table(config, origin, &full, table)?,
            value => {
                let section = config.section_mut(path);
                let set = section.and_then(|section| section.set_toml(&key, value));
                settle(config, set, origin, path, full)?;
            }
        }
    }
    Ok(())
}

/// `NATS__URL`, `AGENTS__JOBS__DEFAULT_IMAGE`: all but the last part are the section.
fn read_variable(config: &mut Config, name: &str, path: &str, value: &str) -> Result<(), Error> {
    let dotted = path.replace("__", ".");
    let (section, key) = dotted.rsplit_once('.').unwrap_or(("", &dotted));
    let set = config.section_mut(section).and_then(|section| section.set_text(key, value));
    settle(config, set, name, section, dotted.clone())
}

fn settle(
    config: &mut Config,
    set: Option<Result<(), String>>,
    origin: &str,
    section: &str,
    key: String,
) -> Result<(), Error> {
    let origin = origin.to_owned();
    match set {
        Some(Ok(())) => Ok(()),
        Some(Err(reason)) => Err(Error::Value { origin, key, reason }),
        None => Err(Error::Unknown { origin, key, known: config.known(section) }),
    }
}

impl Config {
    pub(super) fn sections(&self) -> [&dyn Section; 14] {
        [
            &self.general,
            &self.auth,
            &self.nats,
            &self.store,
            &self.database,
            &self.worker,
            &self.claims,
            &self.fairness,
            &self.telemetry,
            &self.retention,
            &self.secrets,
            &self.agents_jobs,
            &self.actions,
            &self.actions_webhook,
        ]
    }

    fn section_mut(&mut self, name: &str) -> Option<&mut dyn Section> {
        let sections: [&mut dyn Section; 14] = [
            &mut self.general,
            &mut self.auth,
            &mut self.nats,
            &mut self.store,
            &mut self.database,
            &mut self.worker,
            &mut self.claims,
            &mut self.fairness,
            &mut self.telemetry,
            &mut self.retention,
            &mut self.secrets,
            &mut self.agents_jobs,
            &mut self.actions,
            &mut self.actions_webhook,
        ];
        sections.into_iter().find(|section| section.name() == name)
    }

    /// The keys of a section, or every section when there is none of that name.
    fn known(&self, name: &str) -> String {
        let sections = self.sections();
        let names: Vec<_> = match sections.iter().find(|section| section.name() == name) {
            Some(section) if !name.is_empty() => {
                section.keys().into_iter().map(|(key, ..)| key.to_owned()).collect()
            }
            _ => {
                let top = self.general.keys().into_iter().map(|(key, ..)| key.to_owned());
                let rest = sections.iter().skip(1).map(|section| format!("[{}]", section.name()));
                top.chain(rest).collect()
            }
        };
        names.join(", ")
    }
}
