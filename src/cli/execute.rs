//! `errand agents execute`: builds the spec from file, JSON and flags, creates the job.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{ArgAction, Args};
use serde_json::{Map, Value, json};

use super::watch::{Show, Watch};
use super::{Session, Usage};
use crate::exit::Exit;

#[derive(Debug, Default, Args)]
pub(super) struct Execute {
    /// The agent: name or workspace/name
    #[arg(long, value_name = "REF")]
    agent: Option<String>,
    /// What it is asked
    #[arg(long, value_name = "TEXT")]
    input: Option<String>,
    /// What the job is called; made up by the server when not given
    #[arg(long)]
    name: Option<String>,
    /// Wait for the job's end and exit as `jobs watch` does
    #[arg(long)]
    wait: bool,
    /// The agent environment: name or workspace/name
    #[arg(long, value_name = "REF")]
    environment: Option<String>,
    /// What fills the working directory: [workspace/]fileset[#path/]
    #[arg(long = "workdir.base-workdir", value_name = "REF")]
    base_workdir: Option<String>,
    /// How long the agent may run
    #[arg(long, value_name = "SECONDS")]
    timeout_seconds: Option<f64>,
    /// Record the agent's telemetry
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "no_auto_telemetry")]
    auto_telemetry: bool,
    /// Do not record it
    #[arg(long, action = ArgAction::SetTrue)]
    no_auto_telemetry: bool,
    /// The image that the agent runs in
    #[arg(long)]
    image: Option<String>,
    /// What follows a success
    #[arg(long = "post-run-action.kind", value_name = "KIND")]
    post_run_action_kind: Option<String>,
    /// The spec, or part of it, as JSON; wins over --spec-file
    #[arg(long, value_name = "JSON")]
    spec: Option<String>,
    /// The spec, or part of it, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    spec_file: Option<PathBuf>,
}

impl Execute {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let mut body = json!({"spec": self.spec()?});
        if let Some(name) = &self.name {
            body["name"] = name.as_str().into();
        }
        let path = format!("{}/jobs/execute", session.base("agents", None));
        let job = session.client.post(&path, &body).await?;
        if !self.wait {
            session.out.one(&job);
            return Ok(Exit::Done);
        }
        let name = job["name"].as_str().context("the server's answer names no job")?;
        session.out.note(&format!("job '{name}' is created"));
        Watch::new(session, name).run(Show::Status).await
    }

    /// File, then JSON, then flags.
    fn spec(&self) -> anyhow::Result<Value> {
        let mut spec = Map::new();
        if let Some(file) = &self.spec_file {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let value: Value = serde_saphyr::from_str(&text)
                .map_err(|error| Usage(format!("{}: {error}", file.display())))?;
            spec.extend(object(value, &file.display().to_string())?);
        }
        if let Some(text) = &self.spec {
            let value =
                serde_json::from_str(text).map_err(|error| Usage(format!("--spec: {error}")))?;
            spec.extend(object(value, "--spec")?);
        }
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                spec.insert(key.to_owned(), value);
            }
        };
        set("agent", self.agent.clone().map(Value::from));
        set("input", self.input.clone().map(Value::from));
        set("environment", self.environment.clone().map(Value::from));
        set("timeout_seconds", self.timeout_seconds.map(Value::from));
        set("auto_telemetry", self.auto_telemetry.then_some(Value::Bool(true)));
        set("auto_telemetry", self.no_auto_telemetry.then_some(Value::Bool(false)));
        set("image", self.image.clone().map(Value::from));
        set_inside(&mut spec, "workdir", "base_workdir", self.base_workdir.as_deref());
        set_inside(&mut spec, "post_run_action", "kind", self.post_run_action_kind.as_deref());
        if spec.is_empty() {
            return Err(
                Usage("nothing to run: give --agent, --spec or --spec-file".to_owned()).into()
            );
        }
        Ok(Value::Object(spec))
    }
}

/// Sets a key of an object in the spec and keeps the object's other keys.
fn set_inside(spec: &mut Map<String, Value>, outer: &str, inner: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    let slot = spec.entry(outer).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    slot[inner] = value.into();
}

fn object(value: Value, origin: &str) -> Result<Map<String, Value>, Usage> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(Usage(format!("{origin}: expected an object, got {other}"))),
    }
}

#[cfg(test)]
mod tests;
