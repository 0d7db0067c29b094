//! `errand workspaces`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::pages::Sorted;
use super::render::Column;
use super::{Session, filter};
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
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Show the one that is there already instead of failing
        #[arg(long)]
        exist_ok: bool,
    },
    /// List the workspaces
    List(List),
    /// Show one
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Change the description of one
    Update {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
        /// What it is for
        #[arg(long, value_name = "TEXT")]
        description: String,
    },
    /// Delete one
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// A filter as JSON
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    pages: Sorted,
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let one = |name: &str| format!("{PATH}/{}", segment(name));
        match self {
            Self::Create { name, description, exist_ok } => {
                let body = json!({"name": name, "description": description});
                let made = client.post(PATH, &body).await;
                out.one(&match made {
                    Err(error) if exist_ok && error.is_conflict() => {
                        client.get(&one(&name)).await?
                    }
                    made => made?,
                });
            }
            Self::List(List { filter, pages }) => {
                let filter = filter::combine(filter.as_deref(), &[])?;
                pages.show(session, PATH, filter, COLUMNS).await?;
            }
            Self::Get { name } => out.one(&client.get(&one(&name)).await?),
            Self::Update { name, description } => {
                let body = json!({"description": description});
                out.one(&client.send(Method::PUT, &one(&name), &body).await?);
            }
            Self::Delete { name } => out.one(&client.delete(&one(&name)).await?),
        }
        Ok(Exit::Done)
    }
}
