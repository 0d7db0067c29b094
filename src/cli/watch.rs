//! `errand jobs watch` and `tail`: follows a job to its end, over restarts of the server.
//!
//! Lines carry their number, and what is asked for is what came after the last one that was
//! printed: none is printed twice, none is missed, and no more is fetched than that. The server
//! keeps a job's lines complete before its terminal status: one drain after that is enough.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::future;
use serde_json::Value;
use streams::code::Code;
use streams::outcome::Status;

use super::{Session, last_output};
use crate::client::{Client, Error, segment};
use crate::exit::Exit;

/// The pause between looks while something moves.
const MOVING: Duration = Duration::from_millis(200);

/// The longest pause while the server is away.
const AWAY: Duration = Duration::from_secs(2);

/// Lines a request.
const PAGE: u64 = 1000;

/// How long the server may say nothing: what is asked here is answered at once, and a way that
/// has died in silence is found out by it.
const SILENCE: Duration = Duration::from_secs(15);

/// What is printed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// Log lines on stdout, status lines on stderr.
    Log,
    /// The same without the lines that are there when the watch begins.
    NewLog,
    /// Status lines on stderr, the job's record at the end on stdout.
    Status,
}

/// How long somebody watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// In all; no limit when absent.
    pub(super) most: Option<Duration>,
    /// The longest pause between looks, while nothing moves.
    pub(super) still: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { most: None, still: Duration::from_secs(1) }
    }
}

/// Follows one job.
pub(super) struct Watch<'a> {
    session: &'a Session,
    client: Client,
    name: &'a str,
    path: String,
    pub(super) patience: Patience,
    /// Number of the last line printed.
    printed: u64,
    /// Whether the server has answered once; before that, silence is an error.
    met: bool,
    /// The status line that was shown last.
    shown: String,
}

impl<'a> Watch<'a> {
    pub(super) fn new(session: &'a Session, name: &'a str) -> Self {
        let path = format!("{}/jobs/{}", session.base("jobs", None), segment(name));
        Self {
            session,
            client: session.client.hasty(SILENCE).unwrap_or_else(|_| session.client.clone()),
            name,
            path,
            patience: Patience::default(),
            printed: 0,
            met: false,
            shown: String::new(),
        }
    }

    /// A watch of a job that the server has just named: when it is silent now, it will be back.
    pub(super) fn of_known(session: &'a Session, name: &'a str) -> Self {
        Self { met: true, ..Self::new(session, name) }
    }

    /// Follows the job and gives the exit code of its end. Neither Ctrl-C nor impatience ends more
    /// than the watching.
    pub(super) async fn run(mut self, show: Show) -> anyhow::Result<Exit> {
        let patience_ends = match self.patience.most {
            Some(most) => future::Either::Left(tokio::time::sleep(most)),
            None => future::Either::Right(future::pending()),
        };
        tokio::select! {
            exit = self.follow(show) => return exit,
            () = patience_ends => {
                self.session.out.progress("");
                self.session.out.note(&format!("Timed out watching job '{}'", self.name));
                return Ok(Exit::Failed);
            }
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot wait for Ctrl-C")?,
        }
        self.session.out.progress("");
        let known = if self.shown.is_empty() { "unknown" } else { &self.shown };
        self.session.out.note(&format!(
            "Interrupted watching job '{}'; last known status: {known}. Exiting. The job goes on.",
            self.name
        ));
        Ok(Exit::Interrupted)
    }

    /// Prints the last lines and, if asked, those that follow.
    pub(super) async fn tail(mut self, lines: u64, follow: bool) -> anyhow::Result<Exit> {
        let out = &self.session.out;
        let path = format!("{}/logs", self.path);
        let page = self.session.client.query(&path, &[("tail", lines.to_string())]).await?;
        if out.wants_document() && !follow {
            out.list(&page, &[]);
            return Ok(Exit::Done);
        }
        self.met = true;
        self.print(&page);
        if !follow {
            return Ok(Exit::Done);
        }
        tokio::select! {
            exit = self.follow(Show::Log) => exit.map(|_| Exit::Done),
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        }
    }

    async fn follow(&mut self, show: Show) -> anyhow::Result<Exit> {
        if show == Show::NewLog {
            let last = self.get(&format!("{}/logs?tail=1", self.path)).await?;
            self.printed = last["data"][0]["n"].as_u64().unwrap_or(0);
        }
        let mut pause = MOVING;
        loop {
            let answer = self.get(&format!("{}/status", self.path)).await?;
            // The lines before the status that may end it all.
            let mut moved = show != Show::Status && self.drain().await?;
            let line = status_line(&answer);
            if line != self.shown {
                self.session.out.progress("");
                self.session.out.note(&line);
                self.shown = line;
                moved = true;
            }
            if let Some(words) = last_output::words(&answer).filter(|_| !moved) {
                self.session.out.progress(&words);
            }
            pause = if moved { MOVING } else { (pause * 5 / 4).min(self.patience.still) };
            let status: Status = answer["status"].as_str().unwrap_or_default().parse()?;
            if status.is_terminal() {
                return self.end(status, &answer, show).await;
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn end(&mut self, status: Status, answer: &Value, show: Show) -> anyhow::Result<Exit> {
        let exit = Exit::of_job(status, failure_code(answer));
        let out = self.session.out;
        out.progress("");
        out.note(&end_line(self.name, status, answer));
        if let Some(code) = failure_code(answer) {
            out.note(&format!("`errand explain {code}` says what to do"));
        }
        if show == Show::Status || out.wants_document() {
            let path = self.path.clone();
            out.one(&self.get(&path).await?);
        }
        Ok(exit)
    }

    /// Prints what is new in the log; says whether there was anything.
    async fn drain(&mut self) -> anyhow::Result<bool> {
        let before = self.printed;
        loop {
            let seen = self.printed;
            let after = if seen > 0 { format!("&after={seen}") } else { String::new() };
            let page = self.get(&format!("{}/logs?limit={PAGE}{after}", self.path)).await?;
            self.print(&page);
            if page["next_page"].is_null() || self.printed == seen {
                return Ok(self.printed > before);
            }
        }
    }

    fn print(&mut self, page: &Value) {
        for line in page["data"].as_array().into_iter().flatten() {
            let number = line["n"].as_u64().unwrap_or(self.printed + 1);
            if number > self.printed {
                self.printed = number;
                self.session.out.progress("");
                self.session.out.stream(line["message"].as_str().unwrap_or_default());
            }
        }
    }

    /// Gets a document; once the server was met, it may go away and come back.
    async fn get(&mut self, path: &str) -> Result<Value, Error> {
        let mut pause = MOVING;
        let mut told = false;
        loop {
            match self.client.get(path).await {
                Ok(answer) => {
                    if told {
                        self.session.out.note("the server is back");
                    }
                    self.met = true;
                    return Ok(answer);
                }
                Err(error) if self.met && error.is_transient() => {
                    if !told {
                        self.session.out.note(&format!("{error}; trying again"));
                        told = true;
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(AWAY);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The failure code that the server names.
fn failure_code(answer: &Value) -> Option<Code> {
    ["/error_details/code", "/status_details/code"]
        .into_iter()
        .find_map(|at| answer.pointer(at)?.as_str()?.parse().ok())
}

/// `active: Job is running`.
fn status_line(answer: &Value) -> String {
    let status = answer["status"].as_str().unwrap_or("unknown");
    let phase = answer.get("phase").or_else(|| answer.pointer("/status_details/phase"));
    let phase = phase.and_then(Value::as_str).map(|phase| format!(" ({phase})"));
    let message = answer.pointer("/status_details/message").and_then(Value::as_str);
    let message = message.map(|message| format!(": {message}"));
    format!("{status}{}{}", phase.unwrap_or_default(), message.unwrap_or_default())
}

/// `job 'x' ended: error, timeout: the agent ran longer …`.
fn end_line(name: &str, status: Status, answer: &Value) -> String {
    let mut line = format!("job '{name}' ended: {status}");
    if let Some(code) = failure_code(answer) {
        line.push_str(&format!(", {code}"));
    }
    let reason = ["/error_details/error", "/error_details/message"]
        .into_iter()
        .find_map(|at| answer.pointer(at)?.as_str())
        .filter(|reason| !reason.is_empty());
    if let Some(reason) = reason {
        line.push_str(&format!(": {reason}"));
    }
    line
}

#[cfg(test)]
mod tests;
