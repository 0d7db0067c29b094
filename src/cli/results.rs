//! `errand jobs results`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Session;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("WORKSPACE", "/workspace"),
    ("SIZE", "/size"),
    ("COMPLETE", "/complete"),
    ("SECRETS IN", "/secret_detected"),
    ("SHA256", "/sha256"),
    ("CREATED", "/created_at"),
];

const CHANGES: &[Column] = &[("CHANGE", "/change"), ("PATH", "/path")];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List a job's results
    List {
        /// Its name or id
        #[arg(value_parser = super::name)]
        job: String,
        /// The order: created_at or updated_at; with - before it, the other way round
        #[arg(
            long,
            value_name = "FIELD",
            default_value = "-created_at",
            allow_hyphen_values = true
        )]
        sort: String,
    },
    /// Show one's record
    Get {
        /// The result
        #[arg(value_parser = super::name)]
        name: String,
        /// The job
        #[arg(long, value_parser = super::name)]
        job: String,
    },
    /// Show what the agent changed in its working directory: A added, M modified, D deleted
    Changes {
        /// The job
        #[arg(value_parser = super::name)]
        job: String,
    },
    /// Write one to a file: directories as .tar.gz, records as JSON
    Download(Download),
}

#[derive(Debug, Args)]
pub(super) struct Download {
    /// The result
    #[arg(value_parser = super::name)]
    name: String,
    /// The job
    #[arg(long, value_parser = super::name)]
    job: String,
    /// Where to; the name that the server gives it, in this directory, when not given
    #[arg(long, short, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

impl Command {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let Session { client, out } = session;
        let results =
            |job: &str| format!("{}/jobs/{}/results", session.base("jobs", None), segment(job));
        match self {
            Self::List { job, sort } => {
                out.list(&client.query(&results(&job), &[("sort", sort)]).await?, COLUMNS);
            }
            Self::Get { name, job } => {
                let path = format!("{}/{}", results(&job), segment(&name));
                out.one(&client.get(&path).await?);
            }
            Self::Changes { job } => {
                let path = format!("{}/output_workdir/changes", results(&job));
                let answer = client.get(&path).await?;
                if out.is_table() {
                    out.list(&changes(&answer), CHANGES);
                } else {
                    out.one(&answer);
                }
            }
            Self::Download(download) => download.run(session).await?,
        }
        Ok(Exit::Done)
    }
}

/// A row for each path.
fn changes(answer: &Value) -> Value {
    let kinds = [("added", "A"), ("modified", "M"), ("deleted", "D")];
    let rows = kinds.into_iter().flat_map(|(kind, letter)| {
        let paths = answer[kind].as_array().into_iter().flatten();
        paths.map(move |path| json!({"change": letter, "path": path}))
    });
    rows.collect()
}

impl Download {
    async fn run(self, session: &Session) -> anyhow::Result<()> {
        let Session { client, out } = session;
        let (job, name) = (segment(&self.job), segment(&self.name));
        let path = format!("{}/jobs/{job}/results/{name}/download", session.base("jobs", None));
        let download = client.download(&path).await?;
        let target = match self.output_file {
            Some(file) => file,
            None => download.file_name().unwrap_or(self.name).into(),
        };
        let shown = target.display().to_string();
        let written = download
            .write(&target, |done, of| match of {
                Some(of) => out.progress(&format!("{shown}: {done} of {of} bytes")),
                None => out.progress(&format!("{shown}: {done} bytes")),
            })
            .await;
        out.progress("");
        let written = written?;
        out.one(&json!({"file": written.path, "size": written.size, "sha256": written.sha256}));
        Ok(())
    }
}
