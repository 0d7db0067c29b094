//! `errand agents`.

use clap::Subcommand;

use super::Session;
use super::execute::Execute;
use super::pages::Sorted;
use super::register::Register;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("WORKSPACE", "/workspace"),
    ("DESCRIPTION", "/description"),
    ("FORMAT", "/config_format"),
    ("CREATED", "/created_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Store an agent and the files beside its agent.yaml
    Register(Register),
    /// List the agents
    List(Sorted),
    /// Show one
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Delete one; its files and past jobs stay
    Delete {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Run an agent once, as a job
    Execute(Box<Execute>),
    /// What can follow a job's success
    #[command(subcommand)]
    PostRunActions(PostRunActions),
}

#[derive(Debug, Subcommand)]
pub(super) enum PostRunActions {
    /// List the installed ones
    List,
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let path = format!("{}/agents", session.base("agents", None));
        match self {
            Self::Register(register) => register.run(session).await?,
            Self::Execute(execute) => return execute.run(session).await,
            Self::List(list) => list.show(session, &path, None, COLUMNS).await?,
            Self::Get { name } => {
                out.one(&client.get(&format!("{path}/{}", segment(&name))).await?)
            }
            Self::Delete { name } => {
                client.delete(&format!("{path}/{}", segment(&name))).await?;
                out.note(&format!("agent '{name}' is deleted"));
            }
            Self::PostRunActions(PostRunActions::List) => {
                const COLUMNS: &[Column] =
                    &[("KIND", "/kind"), ("TITLE", "/title"), ("DESCRIPTION", "/description")];
                out.list(&client.get("/apis/agents/v2/post-run-actions").await?, COLUMNS);
            }
        }
        Ok(Exit::Done)
    }
}
