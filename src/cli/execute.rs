//! `errand agents execute`: builds the spec from file, JSON and flags, creates the job.

mod flags;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};

use super::rerun::Once;
use super::watch::{Show, Watch};
use super::{Session, Usage, documents};
use crate::exit::Exit;
use flags::SpecFlags;

#[derive(Debug, Args)]
pub(super) struct Execute {
    #[command(flatten)]
    flags: SpecFlags,
    /// What the agent is asked, from a file or from stdin (-)
    #[arg(long, value_name = "FILE", conflicts_with = "input", help_heading = "Spec")]
    input_file: Option<PathBuf>,
    /// The spec, or part of it, as JSON; wins over --spec-file, and flags win over both
    #[arg(long, value_name = "JSON", help_heading = "Spec")]
    spec: Option<String>,
    /// The spec, or part of it, as YAML or JSON, from a file or from stdin (-)
    #[arg(long, value_name = "FILE", help_heading = "Spec")]
    spec_file: Option<PathBuf>,
    /// What the job is called; made up by the server when not given
    #[arg(long, value_parser = super::name)]
    name: Option<String>,
    /// One line for people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The execution profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    once: Once,
    /// Wait for the job's end and exit as `jobs watch` does
    #[arg(long)]
    wait: bool,
}

impl Execute {
    pub(super) async fn run(mut self, session: &Session) -> anyhow::Result<Exit> {
        let (wait, key) = (self.wait, self.once.idempotency_key.take());
        let path = format!("{}/jobs/execute", session.base("agents", None));
        let job = session.client.submit(&path, &self.body()?, key).await?;
        if !wait {
            session.out.one(&job);
            return Ok(Exit::Done);
        }
        let name = job["name"].as_str().context("the server's answer names no job")?;
        session.out.note(&format!("job '{name}' is created"));
        Watch::of_known(session, name).run(Show::Status).await
    }

    /// The request; only what is given is in it.
    fn body(self) -> anyhow::Result<Value> {
        let mut body = Map::new();
        let texts =
            [("name", self.name), ("description", self.description), ("profile", self.profile)];
        for (key, text) in texts {
            body.extend(text.map(|text| (key.to_owned(), json!(text))));
        }
        let stdin = Some(Path::new("-"));
        if self.spec_file.as_deref() == stdin && self.input_file.as_deref() == stdin {
            let text =
                "stdin can be the spec (--spec-file -) or the input (--input-file -), not both";
            return Err(Usage(text.to_owned()).into());
        }
        // File, then JSON, then flags.
        let mut spec = Map::new();
        if let Some(file) = &self.spec_file {
            spec = documents::object_in(file)?;
        }
        if let Some(text) = &self.spec {
            documents::lay_over(&mut spec, documents::object(text, "--spec")?);
        }
        documents::lay_over(&mut spec, self.flags.0);
        if let Some(file) = &self.input_file {
            spec.insert("input".to_owned(), documents::text(file)?.into());
        }
        if spec.is_empty() {
            let text = "nothing to run: give --agent, --spec or --spec-file";
            return Err(Usage(text.to_owned()).into());
        }
        body.insert("spec".to_owned(), Value::Object(spec));
        Ok(Value::Object(body))
    }
}

#[cfg(test)]
mod tests;
