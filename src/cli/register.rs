//! `errand agents register`: the agent first, then the files beside its agent.yaml as the
//! fileset `<name>-ethos`. When the files cannot be stored the agent is taken back.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::tree::{Found, Links, walk};
use super::{Session, files};
use crate::client::{self, segment, segments};

/// What an agent's own files may come to; more belongs into a fileset.
const MOST_FILES: usize = 500;
const MOST_BYTES: u64 = 900_000;

/// What `helix_registration` in agent.yaml may hold; it is sent beside the config.
const LIFTED: [&str; 3] = ["context_schema", "default_input", "post_run_actions"];

/// An old name for what is now called ethos; never staged.
const OLD_ETHOS: &str = "AGENT-SPEC.md";

/// Written by hand on the server and kept when the rest is replaced.
const KEPT: &str = "ETHOS.md";

#[derive(Debug, Args)]
pub(super) struct Register {
    /// What the agent is called
    #[arg(long, short, value_parser = super::name)]
    name: String,
    /// Its agent.yaml; the files beside it become the agent's own
    #[arg(long, short = 'c', value_name = "FILE")]
    agent_config: PathBuf,
    /// One line for people; the config's own when not given
    #[arg(long)]
    description: Option<String>,
    /// Replace an agent of this name
    #[arg(long)]
    force: bool,
}

impl Register {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<()> {
        // Everything that can be wrong here is found before the first request.
        let body = self.body()?;
        let dir = self.agent_config.parent().filter(|dir| !dir.as_os_str().is_empty());
        let own = own_files(dir.unwrap_or(Path::new(".")))?;

        let path = format!("{}/agents", session.base("agents", None));
        let agent = format!("{path}/{}", segment(&self.name));
        let replaced = if self.force { take_away(session, &agent).await? } else { None };
        let registered = match session.client.post(&path, &body).await {
            Ok(registered) => registered,
            Err(error) => {
                put_back(session, &path, replaced).await;
                return Err(error.into());
            }
        };
        if let Err(error) = store_files(session, &self.name, &own).await {
            let undone = session.client.delete(&agent).await.is_ok();
            put_back(session, &path, replaced).await;
            return Err(error).with_context(|| match undone {
                true => format!(
                    "the files of agent '{}' could not be stored; it is not registered",
                    self.name
                ),
                false => format!("the files of agent '{}' could not be stored", self.name),
            });
        }
        session.out.one(&registered);
        Ok(())
    }

    /// The register request.
    fn body(&self) -> anyhow::Result<Value> {
        let file = self.agent_config.display();
        let text = std::fs::read_to_string(&self.agent_config)
            .with_context(|| format!("cannot read agent config {file}"))?;
        let config: Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("agent config {file} is not valid YAML"))?;
        let Value::Object(mut config) = config else {
            bail!("agent config {file} must be a mapping");
        };
        let lifted = lift_registration(&mut config)
            .with_context(|| format!("agent config {file}: helix_registration"))?;
        let description = self.description.clone().map(Value::String);
        let mut body = json!({
            "name": self.name,
            "description": description.or_else(|| config.get("description").cloned()).unwrap_or_default(),
            "config_format": config.get("config_format"),
            "config": config,
        });
        if let Value::Object(body) = &mut body {
            body.retain(|_, value| !value.is_null());
            body.extend(lifted);
        }
        Ok(body)
    }
}

/// Takes `helix_registration` out of the config.
fn lift_registration(config: &mut Map<String, Value>) -> anyhow::Result<Map<String, Value>> {
    match config.remove("helix_registration") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(fields)) => {
            match fields.keys().find(|key| !LIFTED.contains(&key.as_str())) {
                None => Ok(fields),
                Some(key) => bail!("unknown key '{key}', expected one of {}", LIFTED.join(", ")),
            }
        }
        Some(other) => bail!("expected a mapping, got {other}"),
    }
}

/// The files beside agent.yaml, itself included.
fn own_files(dir: &Path) -> anyhow::Result<Vec<Found>> {
    let mut found = walk(dir, Links::Refuse, &mut |_, _| {})?;
    found.retain(|file| file.relative != OLD_ETHOS && !file.relative.starts_with(".git/"));
    let bytes: u64 = found.iter().map(|file| file.size).sum();
    if found.len() > MOST_FILES || bytes > MOST_BYTES {
        bail!(
            "{} holds {} files with {bytes} bytes; an agent's own files may be {MOST_FILES} with \
             {MOST_BYTES} bytes: put agent.yaml into a directory of its own and larger data into \
             a fileset",
            dir.display(),
            found.len(),
        );
    }
    Ok(found)
}

/// Makes the fileset hold exactly these files, and the server's own ETHOS.md.
async fn store_files(session: &Session, name: &str, own: &[Found]) -> anyhow::Result<()> {
    let filesets = format!("{}/filesets", session.base("files", None));
    let fileset = format!("{name}-ethos");
    let path = format!("{filesets}/{}", segment(&fileset));
    match session.client.get(&format!("{path}/files")).await {
        Ok(listing) => {
            let stored = listing["data"].as_array().into_iter().flatten();
            for stale in stored.filter_map(|file| file["path"].as_str()) {
                if stale != KEPT && !own.iter().any(|file| file.relative == stale) {
                    session.client.delete(&format!("{path}/-/{}", segments(stale))).await?;
                }
            }
        }
        Err(error) if error.is_not_found() => {
            let body = json!({"name": fileset, "description": format!("Files of agent {name}")});
            session.client.post(&filesets, &body).await?;
        }
        Err(error) => return Err(error.into()),
    }
    files::upload_all(session, &path, "", own).await
}

/// Removes the agent that is to be replaced, and gives it.
async fn take_away(session: &Session, agent: &str) -> Result<Option<Value>, client::Error> {
    match session.client.get(agent).await {
        Ok(known) => {
            session.client.delete(agent).await?;
            Ok(Some(known))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Registers the replaced agent again after its successor was refused.
async fn put_back(session: &Session, path: &str, replaced: Option<Value>) {
    let Some(Value::Object(mut agent)) = replaced else { return };
    agent.retain(|key, value| {
        let asked = ["name", "description", "config", "config_format"].contains(&key.as_str());
        (asked || LIFTED.contains(&key.as_str())) && !value.is_null()
    });
    if let Err(error) = session.client.post(path, &Value::Object(agent)).await {
        session.out.note(&format!("the agent that was to be replaced is gone: {error}"));
    }
}

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
