//! `errand up`, `serve`, `worker`, `doctor` and `explain`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use streams::code::Code;
use streams::phase::StepName;

use super::Usage;
use super::render::{Column, Output};
use crate::config::{Config, Overrides};
use crate::doctor;
use crate::exit::Exit;
use crate::serve::Roles;
use crate::up;

#[derive(Debug, Args)]
pub(super) struct Up {
    /// Where the data is kept
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address and port of the API; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Agents that run at the same time
    #[arg(long, value_name = "N")]
    slots: Option<u64>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address and port of the API; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// The steps to run, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "STEPS",
        default_value = "resolve,stage,invoke,act,archive"
    )]
    steps: Vec<StepName>,
    /// Agents that run at the same time
    #[arg(long, value_name = "N")]
    slots: Option<u64>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// The data directory to look at
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The code; all of them when not given
    code: Option<String>,
}

impl Up {
    pub(super) async fn run(self, out: Output) -> anyhow::Result<Exit> {
        let Self { data_dir, listen, slots, config } = self;
        let config = Config::load(&Overrides { file: config, data_dir, listen, slots })?;
        up::run(config, |http| out.text(&format!("ready {http}"))).await?;
        Ok(Exit::Done)
    }
}

impl Serve {
    pub(super) async fn run(self, out: Output) -> anyhow::Result<Exit> {
        let overrides = Overrides { file: self.config, listen: self.listen, ..Default::default() };
        let config = Config::load(&overrides)?;
        up::run_apart(config, Roles::server(), |http| out.text(&format!("ready {http}"))).await?;
        Ok(Exit::Done)
    }
}

impl WorkerArgs {
    pub(super) async fn run(self, out: Output) -> anyhow::Result<Exit> {
        let overrides = Overrides { file: self.config, slots: self.slots, ..Default::default() };
        let config = Config::load(&overrides)?;
        let roles = Roles::worker(self.steps);
        up::run_apart(config, roles, |what| out.text(&format!("ready {what}"))).await?;
        Ok(Exit::Done)
    }
}

impl Doctor {
    pub(super) async fn run(self, out: &Output) -> anyhow::Result<Exit> {
        const COLUMNS: &[Column] =
            &[("CHECK", "/check"), ("OK", "/ok"), ("FOUND", "/found"), ("MEND", "/mend")];
        let overrides =
            Overrides { file: self.config, data_dir: self.data_dir, ..Default::default() };
        let findings = doctor::examine(&overrides).await;
        let healthy = findings.iter().all(|finding| finding.mend.is_none());
        let rows: Vec<_> = findings
            .iter()
            .map(|finding| {
                json!({
                    "check": finding.check, "ok": if finding.mend.is_none() { "yes" } else { "NO" },
                    "found": finding.found, "mend": finding.mend,
                })
            })
            .collect();
        out.list(&json!({"data": rows}), COLUMNS);
        Ok(if healthy { Exit::Done } else { Exit::Failed })
    }
}

impl Explain {
    pub(super) fn run(self, out: &Output) -> anyhow::Result<Exit> {
        const COLUMNS: &[Column] = &[("CODE", "/code"), ("EXIT", "/exit"), ("MEANING", "/meaning")];
        let page = |code: Code| {
            let exit = Exit::of_job(streams::outcome::Status::Error, Some(code));
            json!({
                "code": code.as_str(), "exit": exit.code(),
                "meaning": code.meaning(), "remedy": code.remedy(),
            })
        };
        match self.code {
            Some(word) => {
                let code: Code = word.parse().map_err(|error: streams::code::UnknownCode| {
                    Usage(format!("{error}; `errand explain` lists them all"))
                })?;
                out.one(&page(code));
            }
            None => {
                let pages: Vec<_> = Code::ALL.iter().copied().map(page).collect();
                out.list(&json!({"data": pages}), COLUMNS);
            }
        }
        Ok(Exit::Done)
    }
}
