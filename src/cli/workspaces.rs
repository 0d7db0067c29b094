//! `errand workspaces`.

use clap::Subcommand;
use serde_json::json;

use super::Session;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;

const PATH: &str = "/apis/entities/v2/workspaces";
const COLUMNS: &[Column] =
    &[("NAME", "/name"), ("DESCRIPTION", "/description"), ("CREATED", "/created_at")];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a workspace
    Create {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
        /// What it is for
        #[arg(long)]
        description: Option<String>,
    },
    /// List the workspaces
    List,
    /// Show one
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

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        match self {
            Self::Create { name, description } => {
                let body = json!({"name": name, "description": description});
                out.one(&client.post(PATH, &body).await?);
            }
            Self::List => out.list(&client.get(&format!("{PATH}?page_size=100")).await?, COLUMNS),
            Self::Get { name } => {
                out.one(&client.get(&format!("{PATH}/{}", segment(&name))).await?)
            }
            Self::Delete { name } => {
                out.one(&client.delete(&format!("{PATH}/{}", segment(&name))).await?);
            }
        }
        Ok(Exit::Done)
    }
}
