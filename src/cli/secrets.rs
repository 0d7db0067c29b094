//! `errand secrets`. A value comes from stdin, a file or a variable, never from an argument:
//! the command lines of others are visible to everybody.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::render::Column;
use super::{Session, Usage};
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] =
    &[("NAME", "/name"), ("DESCRIPTION", "/description"), ("UPDATED", "/updated_at")];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Store a secret; its value is read from stdin unless a file or variable is named
    Create(Create),
    /// List the secrets, without values
    List,
    /// Show one, without its value
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Delete one
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Its name
    #[arg(value_parser = super::name)]
    name: String,
    /// Take the value of this variable
    #[arg(long, value_name = "VARIABLE", conflicts_with = "from_file")]
    from_env: Option<String>,
    /// Take the content of this file, without a newline at its end
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let path = format!("{}/secrets", session.base("secrets", None));
        match self {
            Self::Create(create) => {
                let value = create.value(session)?;
                let body = json!({
                    "name": create.name, "value": value, "description": create.description,
                });
                out.one(&client.post(&path, &body).await?);
            }
            Self::List => out.list(&client.get(&format!("{path}?page_size=1000")).await?, COLUMNS),
            Self::Get { name } => {
                out.one(&client.get(&format!("{path}/{}", segment(&name))).await?)
            }
            Self::Delete { name } => {
                client.delete(&format!("{path}/{}", segment(&name))).await?;
                out.note(&format!("secret '{name}' is deleted"));
            }
        }
        Ok(Exit::Done)
    }
}

impl Create {
    fn value(&self, session: &Session) -> anyhow::Result<String> {
        if let Some(variable) = &self.from_env {
            return std::env::var(variable)
                .map_err(|error| Usage(format!("variable {variable}: {error}")).into());
        }
        let mut value = String::new();
        if let Some(file) = &self.from_file {
            value = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
        } else {
            if std::io::stdin().is_terminal() {
                session.out.note("type the value, then end the input with Ctrl-D");
            }
            std::io::stdin().read_to_string(&mut value).context("cannot read the value")?;
        }
        if value.ends_with('\n') {
            value.pop();
        }
        Ok(value)
    }
}
