//! `errand jobs rerun`: a new job of another one's snapshot.

use clap::Args;
use serde_json::{Map, Value, json};

use super::Session;
use crate::client::segment;

#[derive(Debug, Args)]
pub(super) struct Rerun {
    /// The job that is run once more: its name or id
    #[arg(value_parser = super::name)]
    job: String,
    /// What the new job is called; made up by the server when not given
    #[arg(long, value_parser = super::name)]
    name: Option<String>,
    #[command(flatten)]
    once: Once,
}

/// What makes a command that is typed twice one submission.
#[derive(Debug, Args)]
pub(super) struct Once {
    /// Make one job under this key, however often the command is run; a key of its own each time
    /// when not given
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
}

impl Rerun {
    pub(super) async fn run(self, session: &Session, jobs: &str) -> anyhow::Result<()> {
        let mut body = Map::new();
        body.extend(self.name.map(|name| ("name".to_owned(), json!(name))));
        let path = format!("{jobs}/{}/rerun", segment(&self.job));
        let key = self.once.idempotency_key;
        let job = session.client.submit(&path, &Value::Object(body), key).await?;
        session.out.one(&job);
        Ok(())
    }
}
