//! `errand batch run`: sends the lines of a file ([`send`]), waits for their jobs and fetches what
//! they leave ([`end`]).
//!
//! Whatever kills it, the same command with `--resume` goes on: lines are sent again under the
//! same keys, which makes no second job, and what the index says is over is over. In memory is
//! no more than the jobs that go on, and where each line's entry stands.

mod end;
mod send;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use streams::code::Code;

use super::directory::Directory;
use super::lines::{Extent, Lines};
use super::progress::{Bar, Counts};
use super::server::Server;
use super::worst;
use crate::cli::{self, Session};
use crate::exit::Exit;
use send::Chunk;

/// The pause between looks while something moves, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

#[derive(Debug, Args)]
pub(in crate::cli) struct Run {
    /// A file of JSON lines, each as `agents execute` sends it: {"spec": {…}, "name": …}
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
    /// Jobs of the batch that are on their way at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    concurrency: u32,
    /// Where results and index.jsonl go; FILE.results beside FILE.jsonl when not given
    #[arg(long, short, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Go on with the batch that the directory has, or begin one when it has none
    #[arg(long)]
    resume: bool,
    /// Run the jobs once more that end with one of these codes, each once
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    retry_failed: Vec<Code>,
    /// What the batch is called; made up when not given
    #[arg(long, value_name = "NAME", value_parser = cli::name)]
    group: Option<String>,
    /// The results that are fetched; all but input_workdir when not given
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    results: Vec<String>,
}

impl Run {
    pub(super) async fn run(self, session: &Session) -> anyhow::Result<Exit> {
        let extent = Lines::extent(&self.file)?;
        let path = self.output_dir.clone().unwrap_or_else(|| self.file.with_extension("results"));
        let workspace = session.client.workspace();
        let directory = Directory::open(path, self.group.clone(), workspace, self.resume)?;
        let (file, shown) = (self.file.display().to_string(), directory.path.display().to_string());
        let group = &directory.begun.group;
        let again = self.again(&file, &shown);
        session
            .out
            .note(&format!("batch '{group}': {} lines; results go to {shown}", extent.lines));
        let batch = Batch {
            lines: Lines::open(&self.file)?,
            asked: self,
            session,
            server: Server::of(session),
            directory,
            extent,
            kept_back: None,
            waiting_for_room: Vec::new(),
            read: 0,
            all_read: false,
            on_their_way: BTreeMap::new(),
            retried: BTreeSet::new(),
        };
        tokio::select! {
            exit = batch.drive() => return exit,
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot wait for Ctrl-C")?,
        }
        session.out.progress("");
        session.out.note(&format!(
            "Interrupted. The jobs that are on their way go on. Go on with the batch by `{again}`."
        ));
        Ok(Exit::Interrupted)
    }
}

impl Run {
    /// The command that goes on with the batch.
    fn again(&self, file: &str, directory: &str) -> String {
        let mut command = format!("errand batch run '{file}' -o '{directory}' --resume");
        command.push_str(&format!(" --concurrency {}", self.concurrency));
        let codes: Vec<_> = self.retry_failed.iter().map(Code::to_string).collect();
        for (flag, words) in [("--retry-failed", &codes), ("--results", &self.results)] {
            if !words.is_empty() {
                command.push_str(&format!(" {flag} {}", words.join(",")));
            }
        }
        command
    }
}

/// A batch that runs.
struct Batch<'s> {
    asked: Run,
    session: &'s Session,
    server: Server<'s>,
    directory: Directory,
    extent: Extent,
    lines: Lines,
    /// What could not be sent because the server had no room.
    kept_back: Option<Chunk>,
    /// The entries of jobs that could not be run once more for the same reason.
    waiting_for_room: Vec<Value>,
    /// The number of the last line of the file that was read.
    read: u32,
    /// Whether the file was read to its end.
    all_read: bool,
    /// The lines whose jobs go on, each with the names of its earlier jobs.
    on_their_way: BTreeMap<u32, Vec<Value>>,
    /// The lines that were run once more by this call.
    retried: BTreeSet<u32>,
}

impl Batch<'_> {
    async fn drive(mut self) -> anyhow::Result<Exit> {
        let mut bar = Bar::new(self.session.out, self.counts().done);
        let mut pause = PAUSES.0;
        while self.goes_on() {
            let sent = self.send().await?;
            let ended = self.look().await?;
            bar.show(&self.counts());
            pause = if sent || ended { PAUSES.0 } else { (pause * 5 / 4).min(PAUSES.1) };
            // While there are lines and room for them, nothing is waited for.
            if !sent {
                tokio::time::sleep(pause).await;
            }
        }
        self.directory.index.tidy()?;
        let counts = self.counts();
        bar.end(&counts);
        let exit = self.directory.index.exits().fold(Exit::Done, worst::worse);
        self.session.out.one(&json!({
            "group": self.directory.begun.group,
            "lines": self.extent.lines,
            "completed": counts.done - counts.failed,
            "failed": counts.failed,
            "index": self.directory.index_path().display().to_string(),
            "exit_code": exit.code(),
        }));
        Ok(exit)
    }

    fn goes_on(&self) -> bool {
        let waits_for_room = self.kept_back.is_some() || !self.waiting_for_room.is_empty();
        !self.all_read || waits_for_room || !self.on_their_way.is_empty()
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts { of: Some(self.extent.lines), ..Counts::default() };
        for exit in self.directory.index.exits() {
            counts.done += 1;
            counts.failed += u64::from(exit != Exit::Done);
        }
        counts.running = self.on_their_way.len() as u64;
        counts
    }
}

/// The line that something is about.
fn number(of: &Value) -> anyhow::Result<u32> {
    let number = of["line"].as_u64().and_then(|line| u32::try_from(line).ok());
    number.with_context(|| format!("the server's answer names no line: {of}"))
}
