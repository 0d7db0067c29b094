//! `errand nats`: the queue's server, for those who run one of their own.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::Usage;
use super::render::Output;
use crate::config::{self, Overrides};
use crate::exit::Exit;
use crate::nats::{Passwords, Users, server, workspace_user};
use crate::records::Records;

/// The files in the directory, beside the passwords.
const SERVER: &str = "nats-server.conf";
const ACCOUNTS: &str = "accounts.conf";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a nats-server's configuration with a user for each workspace
    Config(Config),
}

#[derive(Debug, Args)]
pub(super) struct Config {
    /// Workspaces whose clients may use the queue; all of the records when none is named
    #[arg(value_name = "WORKSPACE", value_parser = super::name)]
    workspaces: Vec<String>,
    /// Write the configuration into this directory; else it is printed, and only the passwords
    /// are kept, in `nats-users` in the data directory
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Give this user another password, or this workspace's; may be repeated
    #[arg(long, value_name = "NAME")]
    rotate: Vec<String>,
    /// Where the server listens
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4222")]
    listen: SocketAddr,
    /// Where the server keeps the streams; `jetstream` in the directory when not given
    #[arg(long, value_name = "DIR")]
    store_dir: Option<PathBuf>,
    /// A subject that agents.publish may publish to, as events.>; may be repeated
    #[arg(long, value_name = "SUBJECT", value_parser = free_subject)]
    publish: Vec<String>,
    /// The platform's file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Command {
    /// `workspace` is what the option of all commands says.
    pub(super) async fn run(self, workspace: Option<String>, out: &Output) -> anyhow::Result<Exit> {
        let Self::Config(mut args) = self;
        args.workspaces.extend(workspace);
        args.run(out).await
    }
}

impl Config {
    async fn run(self, out: &Output) -> anyhow::Result<Exit> {
        let overrides = Overrides { file: self.config, ..Default::default() };
        let config = config::Config::load(&overrides)?;
        let workspaces = match self.workspaces {
            named if named.is_empty() => known(&config).await?,
            named => named.into_iter().collect(),
        };
        let users = Users::of(workspaces.clone(), self.publish);
        let names = users.names();
        let rotate = self.rotate.into_iter().map(|name| match workspaces.contains(&name) {
            true => workspace_user(&name),
            false => name,
        });
        let rotate: Vec<_> = rotate.collect();
        let directory = self.output.clone().unwrap_or_else(|| config.data_dir().join("nats-users"));
        let passwords = Passwords::keep(&directory, &names, &rotate)?;
        let store = self.store_dir.unwrap_or_else(|| directory.join("jetstream"));
        let store = std::path::absolute(&store).context("the working directory is gone")?;
        let (server, accounts) = (server(self.listen, &store), users.accounts(&passwords));
        match self.output {
            None => out.text(&format!("{server}{accounts}")),
            Some(_) => {
                write(&directory.join(ACCOUNTS), &accounts)?;
                let path = directory.join(SERVER);
                if path.exists() {
                    out.note(&format!("{} is yours and stays as it is", path.display()));
                } else {
                    write(&path, &format!("{server}include \"{ACCOUNTS}\"\n"))?;
                }
                out.note(&format!("start it: nats-server --config {}", path.display()));
            }
        }
        out.note(&format!("passwords: {}", directory.join("<user>.password").display()));
        out.note(&format!("users: {}", names.join(", ")));
        Ok(Exit::Done)
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The workspaces that there are.
async fn known(config: &config::Config) -> anyhow::Result<BTreeSet<String>> {
    let file = config.data_dir().join("errand.db");
    if config.database.url.is_none() && !file.exists() {
        return Err(Usage(format!(
            "name the workspaces: there are no records in {} yet, and database.url is not set",
            config.data_dir().display()
        ))
        .into());
    }
    let records = Records::connect(&config.database_url()).await;
    let records = records.context("cannot open the records; name the workspaces instead")?;
    let names = records.workspaces().names().await;
    records.close().await;
    Ok(names?.into_iter().collect())
}

/// Reads a subject that is nobody's yet.
fn free_subject(text: &str) -> Result<String, String> {
    let is_one = !text.split('.').any(str::is_empty) && !text.contains(char::is_whitespace);
    if !is_one || text.starts_with(['_', '*', '>']) || streams::subject::is_reserved(text) {
        return Err("it must begin with a word that is not the platform's, as events.>".to_owned());
    }
    Ok(text.to_owned())
}
