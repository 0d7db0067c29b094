//! `errand jobs facts`: a job's six facts, read from the streams and not from the records.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use streams::broker::{Broker as _, Stored};
use streams::id::JobId;
use streams::jetstream::JetStream;
use streams::phase::Phase;
use streams::subject;
use streams::topology::StreamName;

use super::Session;
use super::render::Column;
use crate::client::{Client, Context, segment};
use crate::config::{Config, Overrides};
use crate::{serve, up};

const COLUMNS: &[Column] = &[
    ("PHASE", "/phase"),
    ("STREAM", "/stream"),
    ("SEQUENCE", "/sequence"),
    ("STORED", "/at"),
    ("AFTER", "/after_ms"),
    ("OUTCOME", "/outcome"),
];

/// Prints the facts of a job of the platform that runs in a data directory.
pub(super) async fn show(
    session: &Session,
    job: &str,
    data_dir: Option<PathBuf>,
) -> anyhow::Result<()> {
    let config = Config::load(&Overrides { data_dir, ..Default::default() })?;
    let ready = up::running(&config.data_dir())?;
    let workspace = session.client.workspace();
    let job = job_id(&ready.http, workspace, job).await?;
    let (broker, _) = JetStream::connect(&ready.connect(), serve::limits(&config)).await?;
    let mut facts = Vec::new();
    let mut begin = None;
    for phase in Phase::CHAIN {
        let stream = StreamName::of(phase);
        if let Some(fact) = broker.last(stream, &subject::fact(phase, workspace, job)).await? {
            let begin = *begin.get_or_insert(fact.at);
            let after = fact.at.duration_since(begin).as_millis();
            facts.push(row(phase, stream, &fact, format!("{after} ms")));
        }
    }
    if facts.is_empty() {
        bail!(
            "the streams hold no fact of job {job} in workspace '{workspace}'; it was finished long ago, or never was"
        );
    }
    session.out.list(&json!({"job": job, "workspace": workspace, "data": facts}), COLUMNS);
    Ok(())
}

fn row(phase: Phase, stream: StreamName, fact: &Stored, after: String) -> Value {
    let payload: Value = serde_json::from_slice(&fact.payload).unwrap_or_default();
    json!({
        "phase": phase,
        "stream": stream.as_str(),
        "subject": fact.subject,
        "sequence": fact.sequence,
        "at": fact.at,
        "after_ms": after,
        "outcome": payload.pointer("/outcome/kind"),
    })
}

/// The id of a job; a name is looked up at the platform itself.
async fn job_id(base_url: &str, workspace: &str, job: &str) -> anyhow::Result<JobId> {
    if let Ok(id) = job.parse() {
        return Ok(id);
    }
    let context =
        Context { base_url: base_url.to_owned(), workspace: workspace.to_owned(), token: None };
    let path = format!("/apis/jobs/v2/workspaces/{}/jobs/{}", segment(workspace), segment(job));
    let record = Client::new(context)?.get(&path).await?;
    let id = record["id"].as_str().context("the server's answer names no id")?;
    Ok(id.parse()?)
}
