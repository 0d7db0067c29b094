//! What facts and news make of a job, without a database.
//!
//! Every change commutes with every other: whatever the order in which a job's facts arrive and
//! however often, the same job comes out. What users see is derived when it is asked for.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use streams::fact::Run;
use streams::id::{Attempt, JobId};
use streams::job::{self, Step, Transition};
use streams::outcome::{Outcome, Status};
use streams::phase::Phase;
use streams::status::StatusMessage;

use crate::records::Result;
use crate::records::projection::{Change, News, Proof};
use crate::records::statement::{Row, Statement, sql};

/// The changing part of a job.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::records) struct Life {
    pub(in crate::records) id: JobId,
    pub(in crate::records) name: String,
    pub(in crate::records) workspace: String,
    pub(super) facts: job::Job,
    pub(super) phase_times: BTreeMap<Phase, Timestamp>,
    run: Option<Run>,
    running: Option<Running>,
    patched_details: Map<String, Value>,
}

/// What the worker of the last attempt that was seen to run says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Running {
    attempt: Attempt,
    /// The first that was heard of it.
    since: Timestamp,
    /// The last that was heard of it, and when.
    details: Map<String, Value>,
    details_at: Timestamp,
}

/// The keys of the details that say how a job ended.
const ENDING_KEYS: [&str; 3] = ["message", "exit_code", "code"];

impl Life {
    /// Takes in a change. Returns what to tell the world: what advanced the job, and what was
    /// delivered before, because that may not have been told.
    pub(in crate::records) fn apply(&mut self, change: &Change) -> Option<StatusMessage> {
        match &change.news {
            News::Running { attempt, details } => {
                self.running(*attempt, change.at, details);
                None
            }
            News::Fact(proof) => {
                let is_news = self.proved(proof, change.at);
                (is_news || change.redelivered).then(|| self.message(proof, change.at))
            }
        }
    }

    /// Returns whether the job was not known to be there or further.
    fn proved(&mut self, proof: &Proof, at: Timestamp) -> bool {
        let step = Step { phase: proof.phase, outcome: proof.outcome.clone() };
        let transition = self.facts.apply(&step);
        let is_first = !self.phase_times.contains_key(&proof.phase);
        self.phase_times.entry(proof.phase).or_insert(at);
        if self.run.is_none() {
            self.run.clone_from(&proof.run);
        }
        if transition == Transition::Advanced && proof.phase == Phase::Archived {
            // The newest word counts, and that is how the job ended. What callers say from now
            // on is newer still.
            self.patched_details.retain(|key, _| !ENDING_KEYS.contains(&key.as_str()));
        }
        is_first && transition != Transition::Stale
    }

    fn running(&mut self, attempt: Attempt, at: Timestamp, details: &Map<String, Value>) {
        self.facts.started(attempt);
        let news = Running { attempt, since: at, details: details.clone(), details_at: at };
        self.running = Some(match self.running.take() {
            Some(known) => known.with(news),
            None => news,
        });
    }

    /// What users see.
    pub(super) fn status(&self) -> Status {
        self.facts.status()
    }

    /// The start of the agent that counts, or the one that runs.
    pub(super) fn attempt(&self) -> Option<Attempt> {
        attempt_of(self.run.as_ref(), self.running.as_ref())
    }

    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.run.as_ref().map(|run| run.started_at).or(self.running.as_ref().map(|it| it.since))
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.phase_times.get(&Phase::Archived).copied()
    }

    /// The reference's details, in the words that it has for subprocesses.
    pub(super) fn status_details(&self) -> Map<String, Value> {
        self.details_at(&self.facts)
    }

    fn details_at(&self, facts: &job::Job) -> Map<String, Value> {
        let mut details = self.own_details(facts);
        details.extend(self.patched_details.clone());
        details
    }

    /// Those that no caller gave.
    pub(super) fn own_details(&self, facts: &job::Job) -> Map<String, Value> {
        let mut details = Map::new();
        let mut say = |pairs: Value| details.extend(pairs.as_object().cloned().unwrap_or_default());
        let running = || self.running.as_ref().map_or(Value::Null, |it| it.details.clone().into());
        match facts.status() {
            Status::Created => {}
            Status::Pending => say(json!({"message": "Subprocess scheduled"})),
            held @ (Status::Pausing | Status::Paused | Status::Resuming) => {
                say(json!({"message": format!("Job is {held}")}));
            }
            Status::Active => {
                say(json!({"message": "Job is running"}));
                say(running());
            }
            Status::Cancelling => {
                say(running());
                say(json!({"message": "Job is cancelling"}));
            }
            ended @ (Status::Completed | Status::Cancelled | Status::Error) => {
                say(running());
                let (message, exit_code) = ending(ended);
                say(json!({"message": message, "exit_code": exit_code}));
                if let Some(code) = facts.outcome.as_ref().and_then(Outcome::code) {
                    say(json!({"code": code}));
                }
            }
        }
        if let Some(usage) = self.run.as_ref().and_then(|run| run.usage) {
            let (input, output) = (usage.input_tokens, usage.output_tokens);
            say(json!({"input_tokens": input, "output_tokens": output}));
        }
        details
    }

    /// Why it ended in an error.
    pub(super) fn error_details(&self) -> Option<Value> {
        let outcome = self.facts.outcome.as_ref().filter(|_| self.status() == Status::Error)?;
        let (message, _) = ending(Status::Error);
        Some(json!({"message": message, "code": outcome.code(), "error": outcome.message()}))
    }

    /// What a fact means, also when the job is further by now.
    fn message(&self, proof: &Proof, at: Timestamp) -> StatusMessage {
        let mut then = self.facts.clone();
        if proof.phase < then.phase {
            (then.phase, then.outcome) = (proof.phase, proof.outcome.clone());
        }
        StatusMessage {
            v: 1,
            job: self.id,
            workspace: self.workspace.clone(),
            name: self.name.clone(),
            at,
            status: then.status(),
            phase: then.phase,
            attempt: self.attempt(),
            code: then.outcome.as_ref().and_then(Outcome::code),
            message: then.outcome.as_ref().map_or("", Outcome::message).to_owned(),
            details: self.details_at(&then),
        }
    }

    /// The columns that [`Self::read`] needs.
    pub(in crate::records) const COLUMNS: &'static str = "id, name, workspace, phase, outcome, run,
         phase_times, running, cancel_requested, hold, patched_details";

    pub(in crate::records) fn read(row: &Row) -> Result<Self> {
        let running: Option<Running> = row.optional_json("running")?;
        let mut facts = job::Job {
            phase: row.word("phase")?,
            outcome: row.optional_json("outcome")?,
            running: None,
            cancel_requested: row.flag("cancel_requested")?,
            hold: row.word("hold")?,
        };
        if let Some(running) = &running {
            facts.started(running.attempt);
        }
        Ok(Self {
            id: row.word("id")?,
            name: row.text("name")?,
            workspace: row.text("workspace")?,
            facts,
            phase_times: row.json("phase_times")?,
            run: row.optional_json("run")?,
            running,
            patched_details: row.optional_json("patched_details")?.unwrap_or_default(),
        })
    }

    /// The statement that stores it.
    pub(in crate::records) fn store(&self) -> Statement {
        sql("UPDATE jobs SET phase = $2, status = $3, outcome = $4, run = $5, phase_times = $6,
                 ended_at = $7, running = $8, cancel_requested = $9, patched_details = $10
             WHERE id = $1")
        .text(&self.id.to_string())
        .text(self.facts.phase.token())
        .text(self.status().as_str())
        .optional_json(self.facts.outcome.as_ref())
        .optional_json(self.run.as_ref())
        .json(&self.phase_times)
        .optional_time(self.ended_at())
        .optional_json(self.running.as_ref())
        .int(self.facts.cancel_requested)
        .json(&self.patched_details)
    }
}

/// The start of the agent that counts, or the one that runs, of a row with these two columns.
pub(super) fn attempt(row: &Row) -> Result<Option<Attempt>> {
    let (run, running) = (row.optional_json("run")?, row.optional_json("running")?);
    Ok(attempt_of(run.as_ref(), running.as_ref()))
}

fn attempt_of(run: Option<&Run>, running: Option<&Running>) -> Option<Attempt> {
    run.map(|run| run.attempt).or(running.map(|running| running.attempt))
}

impl Running {
    /// A later start replaces an earlier one. The news of a start carry all of its details, so
    /// the newest replace those before.
    fn with(self, news: Self) -> Self {
        match news.attempt.cmp(&self.attempt) {
            Ordering::Less => self,
            Ordering::Greater => news,
            Ordering::Equal => {
                let since = self.since.min(news.since);
                let newest = if news.details_at > self.details_at { news } else { self };
                Self { since, ..newest }
            }
        }
    }
}

/// What the reference says of a subprocess that ended so, and with which exit code.
const fn ending(status: Status) -> (&'static str, i32) {
    match status {
        Status::Completed => ("Job completed successfully with exit code 0", 0),
        Status::Cancelled => ("Job was cancelled with exit code 143", 143),
        _ => ("Job exited with code 1", 1),
    }
}

#[cfg(test)]
mod tests;
