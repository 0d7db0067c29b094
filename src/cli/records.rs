//! `errand records`: what can be done about the records themselves.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use streams::jetstream::JetStream;
use streams::topology::Limits;
use workers::store::Store;

use super::render::{Column, Output};
use crate::config::{Config, Overrides};
use crate::exit::Exit;
use crate::rebuild::{Rebuild, Report};
use crate::records::Records;
use crate::{serve, up};

const COLUMNS: &[Column] = &[("JOBS", "/jobs"), ("COUNT", "/count"), ("MEANING", "/meaning")];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the rows of jobs anew from streams and manifests; beside a running platform
    Rebuild(RebuildArgs),
}

#[derive(Debug, Args)]
pub(super) struct RebuildArgs {
    /// The platform's file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data directory of a running platform
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Command {
    pub(super) async fn run(self, out: &Output) -> anyhow::Result<Exit> {
        let Self::Rebuild(RebuildArgs { config, data_dir }) = self;
        let config = Config::load(&Overrides { file: config, data_dir, ..Default::default() })?;
        let running = up::running(&config.data_dir());
        let nats = running.as_ref().ok().map(up::Ready::connect);
        let objects = running.as_ref().ok().map(up::Ready::store);
        let nats = nats.or_else(|| serve::configured_nats(&config));
        let objects = objects.or_else(|| serve::configured_store(&config));
        let (Some(nats), Some(objects)) = (nats, objects) else {
            running.context(
                "start the platform and run this beside it, or name nats.url and store.endpoint",
            )?;
            anyhow::bail!("the running platform does not say where its parts are");
        };
        let (broker, _) = JetStream::connect(&nats, Limits::default()).await?;
        let records = Records::connect(&config.database_url()).await?;
        let rebuild = Rebuild {
            records: records.clone(),
            broker: Arc::new(broker),
            store: Store::new(&objects),
        };
        let rebuilt = rebuild.run(|report| out.progress(&seen(report))).await;
        records.close().await;
        let report = rebuilt.context("the rebuild was broken off, do it again")?;
        out.progress("");
        out.list(&json!({"data": rows(&report), "reasons": report.reasons}), COLUMNS);
        for (job, reason) in &report.reasons {
            out.note(&format!("job {job} cannot be rebuilt: {reason}"));
        }
        out.note(
            "Not rebuilt, for they were in the database only: agents, filesets, secrets, \
             environments, tokens, and details that were laid over those of jobs.",
        );
        Ok(if report.unreadable == 0 { Exit::Done } else { Exit::Failed })
    }
}

fn seen(report: &Report) -> String {
    let Report { made, advanced, kept, unreadable, .. } = report;
    format!("{made} made, {advanced} brought up to date, {kept} kept, {unreadable} unreadable")
}

fn rows(report: &Report) -> Vec<Value> {
    [
        ("made", report.made, "their rows were missing"),
        ("advanced", report.advanced, "their rows were behind"),
        ("kept", report.kept, "their rows were right"),
        ("tombstoned", report.tombstoned, "they were deleted, and stay so"),
        ("waiting", report.waiting, "their rows are made when a worker resolves them"),
        ("unreadable", report.unreadable, "what is left of them does not say enough"),
    ]
    .into_iter()
    .map(|(jobs, count, meaning)| json!({"jobs": jobs, "count": count, "meaning": meaning}))
    .collect()
}
