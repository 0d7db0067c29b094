//! `errand jobs steps`: how the reference's jobs are divided. A job that runs an agent has one.

use clap::Subcommand;

use super::Session;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("WORKSPACE", "/workspace"),
    ("STATUS", "/status"),
    ("CREATED", "/created_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List a job's steps
    List {
        /// The job's name
        #[arg(value_parser = super::name)]
        job: String,
    },
    /// Show one
    Get {
        /// The step
        #[arg(value_parser = super::name)]
        name: String,
        /// The job's name
        #[arg(long, value_parser = super::name)]
        job: String,
    },
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let steps =
            |job: &str| format!("{}/jobs/{}/steps", session.base("jobs", None), segment(job));
        match self {
            Self::List { job } => out.list(&client.get(&steps(&job)).await?, COLUMNS),
            Self::Get { name, job } => {
                let path = format!("{}/{}", steps(&job), segment(&name));
                out.one(&client.get(&path).await?);
            }
        }
        Ok(Exit::Done)
    }
}
