//! `errand config`: contexts of this client, and the platform's effective configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Usage;
use super::render::Output;
use crate::client::context::{Choice, Contexts, valid_base_url};
use crate::config::{Config, Overrides};
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the contexts and the one in use; tokens are removed
    View,
    /// Change a context, the current one unless --context names another; it is made if need be
    Set(Set),
    /// Make a context the current one
    UseContext(Name),
    /// Print the name of the current context
    CurrentContext,
    /// Forget a context
    DeleteContext(Name),
    /// Show the effective configuration; secrets are removed
    Show(Show),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// The context's name
    #[arg(value_parser = super::name)]
    name: String,
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
    /// `flags` is what the command line says; what the environment says is not stored.
    pub(super) fn run(self, flags: Choice, out: &Output) -> anyhow::Result<Exit> {
        match self {
            Self::View => view(&flags.or_environment(), out)?,
            Self::Set(set) => set.run(&flags, out)?,
            Self::UseContext(Name { name }) => {
                let mut contexts = Contexts::load()?;
                contexts.switch(&name)?;
                contexts.save()?;
                out.note(&format!("Switched to context '{name}'"));
            }
            Self::CurrentContext => {
                let chosen = flags.or_environment().context;
                out.text(
                    &chosen.map_or_else(|| Ok(Contexts::load()?.current_context), anyhow::Ok)?,
                );
            }
            Self::DeleteContext(Name { name }) => {
                let mut contexts = Contexts::load()?;
                let was_current = contexts.remove(&name)?;
                contexts.save()?;
                out.note(&format!("Deleted context '{name}'"));
                if was_current {
                    out.note(&format!("Switched to context '{}'", contexts.current_context));
                }
            }
            Self::Show(show) if show.platform => {
                let overrides = Overrides { file: show.config, ..Default::default() };
                out.text(Config::load(&overrides)?.show().trim_end());
            }
            Self::Show(_) => view(&flags.or_environment(), out)?,
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
    fn run(self, flags: &Choice, out: &Output) -> anyhow::Result<()> {
        if flags.base_url.is_none()
            && flags.workspace.is_none()
            && !self.token_from_env
            && !self.activate
        {
            let text =
                "nothing to set: give --base-url, --workspace, --token-from-env or --activate";
            return Err(Usage(text.to_owned()).into());
        }
        let environment = Choice::default().or_environment();
        let mut contexts = Contexts::load()?;
        let named = flags.context.clone().or(environment.context);
        let name = named.unwrap_or_else(|| contexts.current_context.clone());
        let is_new = !contexts.contexts.contains_key(&name);
        let entry = contexts.contexts.entry(name.clone()).or_default();
        if let Some(base_url) = &flags.base_url {
            entry.base_url = Some(valid_base_url(base_url)?);
        }
        if let Some(workspace) = &flags.workspace {
            entry.workspace = Some(workspace.clone());
        }
        if self.token_from_env {
            let unset = || Usage("ERRAND_TOKEN is not set".to_owned());
            entry.token = Some(environment.token.ok_or_else(unset)?);
        }
        if self.activate {
            contexts.switch(&name)?;
        }
        contexts.save()?;
        let is_current = contexts.current_context == name;
        out.note(&match (is_new, is_current) {
            (true, true) => format!("Context '{name}' created and set as current"),
            (true, false) => format!(
                "Context '{name}' created\nTo make it current, run: errand config use-context {name}"
            ),
            (false, _) if self.activate => {
                format!("Configuration updated for context '{name}' and set as current")
            }
            (false, _) => format!("Configuration updated for context '{name}'"),
        });
        Ok(())
    }
}
