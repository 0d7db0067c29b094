//! `errand secrets`. A value comes from stdin, a file or a variable, never from an argument:
//! the command lines of others are visible to everybody.

use std::env::VarError;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};
use workers::ports::SHORTEST_MASKED;
use zeroize::Zeroizing;

use super::pages::Pages;
use super::render::{Column, Output};
use super::{Session, Usage, documents};
use crate::client::segment;
use crate::config::{Config, Overrides};
use crate::exit::Exit;
use crate::records::Records;
use crate::secrets::{Rotated, Rotation, Sealer};

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("WORKSPACE", "/workspace"),
    ("DESCRIPTION", "/description"),
    ("CREATED", "/created_at"),
    ("UPDATED", "/updated_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Store a secret; its value is read from stdin unless a file or variable is named
    Create(Given),
    /// List the secrets, without values
    List(Pages),
    /// Show one, without its value
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Change the value of one, or only its description if that alone is given
    Update(Given),
    /// Delete one
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Seal every secret of this platform with a new key; one that was interrupted is gone on with
    RotateKey(RotateKey),
}

#[derive(Debug, Args)]
pub(super) struct Given {
    /// Its name
    #[arg(value_parser = super::name)]
    name: String,
    /// Take the value of this variable
    #[arg(long, value_name = "VARIABLE", conflicts_with = "from_file")]
    from_env: Option<String>,
    /// Take the content of this file, without a newline at its end; - is stdin
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Works on key file and database themselves, beside a running platform or without one.
#[derive(Debug, Args)]
pub(super) struct RotateKey {
    /// Take the new key from this file, 64 hexadecimal digits, instead of making one
    #[arg(long, value_name = "FILE")]
    new_key: Option<PathBuf>,
    /// A former key that secrets still need and the key file lacks
    #[arg(long, value_name = "FILE")]
    old_key: Option<PathBuf>,
    /// Leave the old keys in the key file, to copy it to other machines; run again without this
    #[arg(long)]
    keep_old: bool,
    /// The data directory of the platform
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl RotateKey {
    pub(super) async fn run(self, out: &Output) -> anyhow::Result<Exit> {
        let key = |file: &Option<PathBuf>| {
            let key = file.as_deref().map(|file| {
                let digits = Zeroizing::new(documents::text(file)?);
                Sealer::from_hex(&digits).with_context(|| file.display().to_string())
            });
            key.transpose()
        };
        let rotation = Rotation {
            new_key: key(&self.new_key)?,
            old_key: key(&self.old_key)?,
            keep_old: self.keep_old,
        };
        let overrides =
            Overrides { file: self.config, data_dir: self.data_dir, ..Default::default() };
        let config = Config::load(&overrides)?;
        let records = Records::connect(&config.database_url()).await;
        let records = records.context("cannot open the records")?;
        let rotated = rotation.run(&records, &config.key_file()).await;
        records.close().await;
        let Rotated { key, secrets, resumed, old_keys } = rotated?;
        if resumed {
            out.note("went on with the rotation that was begun before");
        }
        out.one(&json!({
            "key_file": config.key_file(), "key": key, "secrets": secrets, "old_keys": old_keys,
        }));
        Ok(Exit::Done)
    }
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let path = format!("{}/secrets", session.base("secrets", None));
        let one = |name: &str| format!("{path}/{}", segment(name));
        match self {
            Self::Create(given) => {
                let body = json!({
                    "name": given.name,
                    "value": given.value(session)?,
                    "description": given.description,
                });
                out.one(&client.post(&path, &body).await?);
                given.warn_if_short(&body["value"], session);
            }
            Self::List(pages) => pages.show(session, &path, Vec::new(), COLUMNS).await?,
            Self::Get { name } => out.one(&client.get(&one(&name)).await?),
            Self::Update(given) => {
                let mut body = Map::new();
                let description_only = given.from_env.is_none() && given.from_file.is_none();
                if !(description_only && given.description.is_some()) {
                    body.insert("value".to_owned(), given.value(session)?.into());
                }
                let description = given.description.clone();
                body.extend(description.map(|text| ("description".to_owned(), text.into())));
                let body = Value::Object(body);
                out.one(&client.send(Method::PATCH, &one(&given.name), &body).await?);
                given.warn_if_short(&body["value"], session);
            }
            Self::Delete { name } => {
                client.delete(&one(&name)).await?;
                out.note(&format!("secret '{name}' is deleted"));
            }
            Self::RotateKey(rotation) => return rotation.run(out).await,
        }
        Ok(Exit::Done)
    }
}

impl Given {
    fn value(&self, session: &Session) -> anyhow::Result<String> {
        if let Some(variable) = &self.from_env {
            // The error's own words hold the value when it is no text.
            return std::env::var(variable).map_err(|error| match error {
                VarError::NotPresent => Usage(format!("variable {variable} is not set")).into(),
                VarError::NotUnicode(_) => {
                    Usage(format!("variable {variable} is not UTF-8")).into()
                }
            });
        }
        let file = self.from_file.as_deref().unwrap_or(Path::new("-"));
        if file == Path::new("-") && std::io::stdin().is_terminal() {
            session.out.note("type the value, then end the input with Ctrl-D");
        }
        let mut value = documents::text(file)?;
        if value.ends_with('\n') {
            value.pop();
        }
        Ok(value)
    }

    /// Says of a value that is kept what its owner may not expect.
    fn warn_if_short(&self, value: &Value, session: &Session) {
        if value.as_str().is_some_and(|value| value.len() < SHORTEST_MASKED) {
            session.out.note(&format!(
                "secret '{}' has fewer than {SHORTEST_MASKED} bytes and is not masked in logs",
                self.name
            ));
        }
    }
}
