//! `errand batch`: thousands of specs through, all results out.

mod directory;
mod fetch;
mod index;
mod lines;
mod progress;
mod run;
mod server;
mod watch;
mod worst;

use clap::Subcommand;

use super::Session;
use super::pages::Sorted;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;
use run::Run;

const COLUMNS: &[Column] = &[
    ("GROUP", "/group"),
    ("WORKSPACE", "/workspace"),
    ("LINES", "/lines"),
    ("CREATED", "/created_at"),
    ("UPDATED", "/updated_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a job for each line of a file and fetch all results; exits by the worst of them
    #[command(after_help = worst::HELP)]
    Run(Run),
    /// Follow a batch to its end; exits by the worst of its jobs
    #[command(after_help = worst::HELP)]
    Watch {
        /// Its name
        #[arg(value_parser = super::name)]
        group: String,
    },
    /// List batches, the newest first
    List(Sorted),
    /// Show how far one is
    Get {
        /// Its name
        #[arg(value_parser = super::name)]
        group: String,
    },
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        match self {
            Self::Run(run) => return run.run(session).await,
            Self::Watch { group } => return watch::watch(session, &group).await,
            Self::List(pages) => pages.show(session, &batches(session), None, COLUMNS).await?,
            Self::Get { group } => {
                session.out.one(&session.client.get(&batch(session, &group)).await?);
            }
        }
        Ok(Exit::Done)
    }
}

/// Where batches are.
fn batches(session: &Session) -> String {
    format!("{}/jobs/execute:batch", session.base("agents", None))
}

/// Where one is.
fn batch(session: &Session, group: &str) -> String {
    format!("{}/{}", batches(session), segment(group))
}
