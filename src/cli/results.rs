//! `errand jobs results`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::Session;
use super::render::Column;
use crate::client::segment;
use crate::exit::Exit;

const COLUMNS: &[Column] = &[
    ("NAME", "/name"),
    ("SIZE", "/size"),
    ("COMPLETE", "/complete"),
    ("SHA256", "/sha256"),
    ("CREATED", "/created_at"),
];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List a job's results
    List {
        /// Its name or id
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
        match self {
            Self::List { job } => {
                let path = format!("{}/jobs/{}/results", session.base("jobs", None), segment(&job));
                session.out.list(&session.client.get(&path).await?, COLUMNS);
            }
            Self::Download(download) => download.run(session).await?,
        }
        Ok(Exit::Done)
    }
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
