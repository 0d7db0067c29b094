//! `errand topology`: the chain, its streams and consumers, and how the server's differ.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use streams::jetstream::JetStream;
use streams::phase::{Phase, Share, StepName};
use streams::topology::{
    ConsumerSpec, Limits, StreamName, projector_consumers, step_consumer, streams,
};

use super::render::{Column, Output};
use crate::config::{Config, Overrides};
use crate::exit::Exit;
use crate::serve;
use crate::up;

const COLUMNS: &[Column] = &[
    ("KIND", "/kind"),
    ("NAME", "/name"),
    ("SUBJECTS", "/subjects"),
    ("PER SUBJECT", "/per_subject"),
    ("MEANING", "/meaning"),
];

#[derive(Debug, Args)]
pub(super) struct Topology {
    /// Print the chain as a Mermaid diagram
    #[arg(long)]
    diagram: bool,
    /// The platform's file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data directory of a running platform
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Topology {
    pub(super) async fn run(self, out: &Output) -> anyhow::Result<Exit> {
        if self.diagram {
            out.text(&diagram());
            return Ok(Exit::Done);
        }
        let overrides =
            Overrides { file: self.config, data_dir: self.data_dir, ..Default::default() };
        let config = Config::load(&overrides)?;
        let running = up::running(&config.data_dir()).ok();
        let connect =
            running.as_ref().map(up::Ready::connect).or_else(|| serve::configured_nats(&config));
        let drift = match connect {
            Some(connect) => JetStream::connect(&connect, serve::limits(&config)).await?.1,
            None => {
                out.note("no platform runs and nats.url is not set: shown as it would be made");
                Vec::new()
            }
        };
        out.list(&json!({"data": rows()}), COLUMNS);
        for drift in &drift {
            out.note(&format!("drift: {drift}"));
        }
        Ok(if drift.is_empty() { Exit::Done } else { Exit::Failed })
    }
}

/// Streams first, then who reads them.
fn rows() -> Vec<Value> {
    let streams = streams(Limits::default()).into_iter().map(|stream| {
        json!({
            "kind": "stream",
            "name": stream.name.as_str(),
            "subjects": stream.subjects.join(" "),
            "per_subject": if stream.per_subject == 0 { json!("any") } else { json!(stream.per_subject) },
            "meaning": stream.meaning,
        })
    });
    let steps = StepName::ALL.into_iter().map(|step| match share(step) {
        Share::All => consumer(&step_consumer(step, ""), format!("makes {} facts", produces(step))),
        Share::PerWorkspace => {
            let mut row =
                consumer(&step_consumer(step, "x"), format!("makes {} facts", produces(step)));
            row["name"] =
                format!("{}/{step}_<workspace>", StreamName::of(step.consumes()).as_str()).into();
            row["subjects"] = format!("jobs.{}.<workspace>.>", step.consumes()).into();
            row
        }
    });
    let projector = projector_consumers();
    let projector = projector.iter().map(|spec| consumer(spec, "turns facts into rows".to_owned()));
    streams.chain(steps).chain(projector).collect()
}

fn consumer(spec: &ConsumerSpec, meaning: String) -> Value {
    let filter = if spec.filter.is_empty() { ">" } else { &spec.filter };
    json!({
        "kind": "consumer",
        "name": format!("{}/{}", spec.stream.as_str(), spec.name),
        "subjects": filter,
        "meaning": meaning,
    })
}

fn share(step: StepName) -> Share {
    step.consumes().spec().next.map_or(Share::All, |next| next.share)
}

fn produces(step: StepName) -> String {
    step.consumes().next().map_or_else(String::new, |phase| phase.to_string())
}

/// The chain as Mermaid, from the table of phases.
pub(super) fn diagram() -> String {
    let mut lines = vec!["flowchart LR".to_owned()];
    for phase in Phase::CHAIN {
        let spec = phase.spec();
        lines.push(format!(
            "    {phase}[\"<b>{phase}</b><br/>{}<br/><i>{}</i>\"]",
            spec.meaning,
            StreamName::of(phase).as_str()
        ));
        if let Some(next) = spec.next {
            let share = match next.share {
                Share::All => "",
                Share::PerWorkspace => "<br/>one consumer a workspace",
            };
            lines.push(format!("    {phase} -->|{}{share}| {}", next.step, next.phase));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
