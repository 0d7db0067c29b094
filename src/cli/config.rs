//! `errand config`: contexts of this client, and the platform's effective configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::render::Output;
use crate::client::context::{Choice, Contexts, valid_base_url};
use crate::config::{Config, Overrides};
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the contexts and the one in use; tokens are removed
    View,
    /// Change a context, the current one unless --context names another
    Set(Set),
    /// Make a context the current one
    UseContext {
        /// Its name
        #[arg(value_parser = super::name)]
        name: String,
    },
    /// Show the effective configuration; secrets are removed
    Show(Show),
}

#[derive(Debug, Args)]
pub(super) struct Set {
    /// Store ERRAND_TOKEN as the context's token
    #[arg(long)]
    token_from_env: bool,
    /// Make the context the current one
    #[arg(long)]
    activate: bool,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The platform's, not this client's
    #[arg(long)]
    platform: bool,
    /// The platform's file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Command {
    pub(super) fn run(self, choice: &Choice, out: &Output) -> anyhow::Result<Exit> {
        match self {
            Self::View => view(choice, out)?,
            Self::Set(set) => set.run(choice, out)?,
            Self::UseContext { name } => {
                let mut contexts = Contexts::load()?;
                contexts.switch(&name)?;
                contexts.save()?;
                out.note(&format!("current context is '{name}'"));
            }
            Self::Show(show) if show.platform => {
                let overrides = Overrides { file: show.config, ..Default::default() };
                out.text(Config::load(&overrides)?.show().trim_end());
            }
            Self::Show(_) => view(choice, out)?,
        }
        Ok(Exit::Done)
    }
}

fn view(choice: &Choice, out: &Output) -> anyhow::Result<()> {
    let contexts = Contexts::load()?;
    let effective = contexts.choose(choice)?;
    let entries = contexts.contexts.iter().map(|(name, entry)| {
        let token = entry.token.as_ref().map(|_| "(removed)");
        let shown = json!({
            "base_url": entry.base_url, "workspace": entry.workspace, "token": token,
        });
        (name.clone(), shown)
    });
    out.one(&json!({
        "file": Contexts::path(),
        "current_context": choice.context.as_ref().unwrap_or(&contexts.current_context),
        "base_url": effective.base_url,
        "workspace": effective.workspace,
        "token": effective.token.map(|_| "(removed)"),
        "contexts": Value::Object(entries.collect()),
    }));
    Ok(())
}

impl Set {
    fn run(self, choice: &Choice, out: &Output) -> anyhow::Result<()> {
        let mut contexts = Contexts::load()?;
        let name = choice.context.clone().unwrap_or_else(|| contexts.current_context.clone());
        let entry = contexts.contexts.entry(name.clone()).or_default();
        if let Some(base_url) = &choice.base_url {
            entry.base_url = Some(valid_base_url(base_url)?);
        }
        if let Some(workspace) = &choice.workspace {
            entry.workspace = Some(workspace.clone());
        }
        if self.token_from_env {
            entry.token.clone_from(&choice.token);
        }
        if self.activate {
            contexts.switch(&name)?;
        }
        contexts.save()?;
        out.note(&format!("context '{name}' is set in {}", Contexts::path().display()));
        Ok(())
    }
}
