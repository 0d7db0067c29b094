//! `errand filesets`.

use clap::Subcommand;
use serde_json::json;

use super::Session;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("PURPOSE", "/purpose"),
    ("DESCRIPTION", "/description"),
    ("CREATED", "/created_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make an empty fileset
    Create {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
        /// generic, dataset, environment or model
        #[arg(long, default_value = "generic")]
        purpose: String,
    },
    /// List the filesets
    List,
    /// Show one
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Delete one with its files
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let path = format!("{}/filesets", session.base("files", None));
        match self {
            Self::Create { name, description, purpose } => {
                let body = json!({"name": name, "description": description, "purpose": purpose});
                out.one(&client.post(&path, &body).await?);
            }
            Self::List => out.list(&client.get(&format!("{path}?page_size=100")).await?, COLUMNS),
            Self::Get { name } => {
                out.one(&client.get(&format!("{path}/{}", segment(&name))).await?)
            }
            Self::Delete { name } => {
                out.one(&client.delete(&format!("{path}/{}", segment(&name))).await?);
            }
        }
        Ok(Exit::Done)
    }
}
