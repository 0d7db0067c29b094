//! `errand jobs rerun`: a new job that runs another one once more.

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
    /// Run exactly what the job ran, which is so when nothing is said
    #[arg(long, conflicts_with = "latest")]
    snapshot: bool,
    /// Look up agent, environment and files anew
    #[arg(long)]
    latest: bool,
    /// Ask the agent this instead
    #[arg(long, value_name = "TEXT")]
    input: Option<String>,
    /// Begin with what the job left in its working directory
    #[arg(long, value_name = "WHAT", alias = "base")]
    workdir_from: Option<WorkdirFrom>,
    #[command(flatten)]
    once: Once,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WorkdirFrom {
    /// Its output_workdir
    #[value(alias = "output_workdir")]
    Output,
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
        let given = [
            ("name", self.name.map(|name| json!(name))),
            ("latest", self.latest.then(|| json!(true))),
            ("input", self.input.map(|input| json!(input))),
            ("workdir_from", self.workdir_from.map(|WorkdirFrom::Output| json!("output"))),
        ];
        for (key, value) in given {
            body.extend(value.map(|value| (key.to_owned(), value)));
        }
        let path = format!("{jobs}/{}/rerun", segment(&self.job));
        let key = self.once.idempotency_key;
        let job = session.client.submit(&path, &Value::Object(body), key).await?;
        session.out.one(&job);
        Ok(())
    }
}
